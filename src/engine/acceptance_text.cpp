// The tables of `tandem accept`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/engine/acceptance_report.h"
#include "src/engine/trace.h"

namespace tandem {
namespace {

// A dash where there is nothing to divide by.
std::string ratio(double part, double whole, int digits = 3) {
  return whole > 0 ? fmt::format("{:.{}f}", part / whole, digits) : "-";
}

std::string rate(std::int64_t part, std::int64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

std::string interval(const std::optional<Interval>& found, int digits = 3) {
  return found ? fmt::format("{:.{}f} .. {:.{}f}", found->low, digits, found->high, digits) : "-";
}

std::string group_line(std::string_view name, const AcceptanceGroup& group) {
  const AcceptanceCounts& c = group.counts;
  const DraftCounts& drafts = c.metrics.total;
  return fmt::format(
      "  {:<12}{:>8}{:>8}{:>7}{:>8}{:>10}{:>12}{:>18}{:>13}{:>15}{:>8}\n", name, c.answers, c.metrics.generated,
      c.metrics.steps, drafts.tested, drafts.accepted, rate(drafts.accepted, drafts.tested),
      interval(wilson_interval(drafts.accepted, drafts.tested)),
      ratio(static_cast<double>(drafts.accepted + c.metrics.steps), static_cast<double>(c.metrics.steps), 2),
      ratio(c.sampled.expected, static_cast<double>(c.sampled.tested)), rate(c.same_top, c.compared));
}

std::string groups_text(const TemperatureAcceptance& found) {
  std::string text = fmt::format("  {:<12}{:>8}{:>8}{:>7}{:>8}{:>10}{:>12}{:>18}{:>13}{:>15}{:>8}\n", "task", "answers",
                                 "tokens", "steps", "tested", "accepted", "acceptance", "95 % interval", "tokens/step",
                                 "sum min(p, q)", "top-1");
  for (const TemperatureAcceptance::Task& task : found.tasks) {
    text += group_line(task.name.empty() ? "-" : task.name, task.group);
  }
  if (found.tasks.size() != 1) text += group_line("all", found.all);
  const auto acceptance = bootstrap_interval(found.all.accepted_of_tested);
  if (!acceptance) return text;
  return text + fmt::format("  over prompts: acceptance {}, tokens/step {}\n", interval(acceptance),
                            interval(bootstrap_interval(found.all.tokens_of_steps), 2));
}

// What rejection sampling should have accepted, beside what the rule did accept.
std::string expected_text(const ExpectedCounts& c, std::string_view what, std::string_view by, std::string_view rule) {
  if (c.tested == 0) return {};
  const auto tested = static_cast<double>(c.tested);
  const double error = std::sqrt(c.variance), gap = static_cast<double>(c.accepted) - c.expected;
  std::string text = fmt::format("  {}: {} gives {:.4f}, accepted {:.4f}", what, by, c.expected / tested,
                                 static_cast<double>(c.accepted) / tested);
  if (error == 0) return text + "\n";  // nothing was left to chance
  if (rule != "rejection") return text + fmt::format(" ({} decides otherwise than rejection)\n", rule);
  return text + fmt::format(": {:+.1f} standard errors of {:.4f}\n", gap / error, error / tested);
}

std::string positions_text(const AcceptanceCounts& counts) {
  std::string text = fmt::format("  {:<12}{:>8}{:>8}{:>10}{:>12}{:>18}{:>14}{:>18}\n", "position", "drafted", "tested",
                                 "accepted", "of tested", "95 % interval", "of drafted", "95 % interval");
  for (std::size_t i = 0; i < counts.positions.size() && counts.positions[i].drafted > 0; ++i) {
    const PositionCounts& p = counts.positions[i];
    text += fmt::format("  {:<12}{:>8}{:>8}{:>10}{:>12}{:>18}{:>14}{:>18}\n", i + 1, p.drafted, p.tested, p.accepted,
                        rate(p.accepted, p.tested), interval(wilson_interval(p.accepted, p.tested)),
                        rate(p.accepted, p.drafted), interval(wilson_interval(p.accepted, p.drafted)));
  }
  return text;
}

std::string bins_text(const AcceptanceCounts& counts) {
  std::string text = fmt::format("  {:<10}{:<14}{:>8}{:>18}{:>12}{:>18}\n", "source", "confidence", "tested",
                                 "mean confidence", "acceptance", "95 % interval");
  for (std::size_t source = 0; source < counts.bins.size(); ++source) {
    for (std::size_t i = 0; i < counts.bins[source].size(); ++i) {
      const BinCounts& bin = counts.bins[source][i];
      if (bin.tested == 0) continue;
      const double low = i == 0 ? 0 : kConfidenceBorders[i - 1];
      const double high = i < kConfidenceBorders.size() ? kConfidenceBorders[i] : 1;
      text += fmt::format("  {:<10}{:<14}{:>8}{:>18}{:>12}{:>18}\n", name_of(static_cast<DraftSource>(source)),
                          fmt::format("{:.2f} .. {:.2f}", low, high), bin.tested,
                          ratio(bin.confidence, static_cast<double>(bin.tested)), rate(bin.accepted, bin.tested),
                          interval(wilson_interval(bin.accepted, bin.tested)));
    }
  }
  return text;
}

std::string forecast_text(const AcceptanceCounts& counts, const CostModel& costs) {
  const std::vector<LengthForecast> forecasts = forecast_lengths(counts, costs);
  const LengthForecast& best = best_of(forecasts);
  std::string text = fmt::format("  {:<12}{:>12}{:>12}{:>14}{:>14}\n", "length", "tokens/step", "ms a step",
                                 "speed / plain", "break-even");
  for (const LengthForecast& f : forecasts) {
    const std::string even = f.length == 0                 ? "-"
                             : std::isfinite(f.break_even) ? fmt::format("{:.3f}", f.break_even)
                                                           : "never";
    text += fmt::format("  {:<12}{:>12.2f}{:>12.1f}{:>14.2f}{:>14}{}\n", f.length, f.tokens, 1e3 * f.seconds, f.speed,
                        even, &f == &best ? "  <- best" : "");
  }
  const Metrics& m = counts.metrics;
  const MeasuredSteps measured = measured_steps(counts, costs);
  const double scale = 1e3 / static_cast<double>(std::max<std::int64_t>(m.steps, 1));
  return text + fmt::format(
                    "  measured: {:.1f} ms a step (draft {:.1f}, target {:.1f}, draws {:.1f}), {:.2f} of plain speed\n",
                    1e3 * measured.seconds, scale * m.seconds.draft, scale * m.seconds.verify, scale * m.seconds.sample,
                    measured.speed);
}

}  // namespace

std::string to_text(const VocabularyReport& report) {
  const VocabularyComparison& c = report.comparison;
  std::string text = fmt::format("vocabulary: target {}, {} ids; draft {}, {} ids: ", report.target, c.target_size,
                                 report.draft, c.draft_size);
  if (c.match() != VocabularyMatch::different) {
    text += c.padding > 0 ? fmt::format("the same but for {} ids that neither may generate", c.padding) : "the same";
    return text + (report.fits() ? "\n" : ", so that draft.retokenize is refused\n");
  }
  text += fmt::format("{} ids DIFFER, {} ({} pieces are in both, some under other ids)\n", c.differing,
                      report.fits() ? "so that it drafts through text (draft.retokenize)"
                                    : "the pair is refused unless draft.retokenize is true",
                      c.shared_pieces);
  for (const TokenDifference& d : c.first) text += fmt::format("  id {}: {} / {}\n", d.id, d.target, d.draft);
  const auto more = c.differing - static_cast<int>(c.first.size());
  return more > 0 ? text + fmt::format("  and {} more\n", more) : text;
}

std::string to_text(const TemperatureAcceptance& found, const CostModel& costs, std::string_view rule) {
  const AcceptanceCounts& counts = found.all.counts;
  std::string text = fmt::format("temperature {}, rule {}\n", found.temperature, rule) + groups_text(found);
  text += expected_text(counts.sampled, "drawn drafts", "sum min(p, q)", rule);
  text += expected_text(counts.deterministic, "deterministic drafts", "p of the draft", rule);
  if (counts.metrics.total.proposed == 0) return text + "  nothing was drafted\n";
  return text + "\n" + positions_text(counts) + "\n" + bins_text(counts) + "\n" + forecast_text(counts, costs);
}

}  // namespace tandem
