#include "src/engine/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "src/base/error.h"
#include "src/engine/report.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarsPerUnit = 12;  // signs of a bar for a speed-up of 1
constexpr int kLongestBar = 48;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<double> ratio(double part, double whole) {
  return whole > 0 ? std::optional(part / whole) : std::nullopt;
}

std::optional<double> tokens_a_second(const SweepRun& run) {
  return ratio(static_cast<double>(run.decoded), run.decode_seconds);
}

std::optional<double> acceptance(const SweepRun& run) {
  return ratio(static_cast<double>(run.total.accepted), static_cast<double>(run.total.tested));
}

std::optional<double> tokens_a_step(const SweepRun& run) {
  return ratio(static_cast<double>(run.total.accepted + run.steps), static_cast<double>(run.steps));
}

std::optional<double> low(const CellFigures& f) { return f.speedup ? f.speedup->low : std::nullopt; }
std::optional<double> high(const CellFigures& f) { return f.speedup ? f.speedup->high : std::nullopt; }
std::optional<double> speedup(const CellFigures& f) {
  return f.speedup ? std::optional(f.speedup->value) : std::nullopt;
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string length_of(const SweepCell& cell) {
  return cell.config.draft.length ? fmt::to_string(*cell.config.draft.length) : "auto";
}

Json prompts_json(const SweepReport& report, const CellFigures& f) {
  Json list = Json::array();
  for (const PromptFigures& of : f.prompts) {
    list.push_back({{"id", report.prompts[of.prompt].id},
                    {"task", report.prompts[of.prompt].task},
                    {"speedup", of.speedup},
                    {"pairs", of.pairs},
                    {"noisy", of.noisy}});
  }
  return list;
}

Json faults_json(const CellFigures& f) {
  Json list = Json::array();
  for (const SweepPair* pair : f.differing) {
    list.push_back({{"prompt", pair->prompt}, {"repeat", pair->repeat}, {"differs_at", *pair->differs_at}});
  }
  for (const SweepPair* pair : f.failed) {
    list.push_back({{"prompt", pair->prompt}, {"repeat", pair->repeat}, {"error", pair->error}});
  }
  return list;
}

Json cell_json(const SweepReport& report, const CellFigures& f) {
  const SweepCell& cell = report.cells[f.cell];
  const DraftConfig& draft = cell.config.draft;
  return {{"cell", cell.key()},
          {"name", cell.name()},
          {"kind", draft.kind},
          {"length", draft.length ? Json(*draft.length) : Json("auto")},
          {"threshold", draft.min_probability},
          {"rule", cell.config.verify.rule},
          {"lossless", make_verifier(cell.config.verify.rule)->lossless()},
          {"temperature", cell.config.sampling.temperature},
          {"pairs", f.pairs},
          {"noisy", f.noisy},
          {"short_answers", f.short_answers},
          {"speedup", number(speedup(f))},
          {"speedup_low", number(low(f))},
          {"speedup_high", number(high(f))},
          {"speedup_with_noisy", number(f.speedup_of_all)},
          {"tokens_per_second", number(tokens_a_second(f.drafted))},
          {"plain_tokens_per_second", number(tokens_a_second(f.plain))},
          {"acceptance_rate", number(acceptance(f.drafted))},
          {"mean_accepted_length", number(tokens_a_step(f.drafted))},
          {"drafted", to_json(f.drafted)},
          {"plain", to_json(f.plain)},
          {"prompts", prompts_json(report, f)},
          {"faults", faults_json(f)}};
}

Json winner_json(const SweepReport& report, const Winner& winner) {
  Json as_good = Json::array();
  for (const CellFigures* each : winner.as_good) as_good.push_back(report.cells[each->cell].name());
  return {{"temperature", winner.temperature},
          {"cell", winner.figures ? Json(report.cells[winner.figures->cell].key()) : Json(nullptr)},
          {"name", winner.figures ? Json(report.cells[winner.figures->cell].name()) : Json("plain decoding")},
          {"as_good", std::move(as_good)}};
}

// What holds for the whole sweep: the settings of the session, less those that its cells have otherwise.
Json common_settings(const SweepReport& report) {
  Json settings = settings_json(report.session);
  for (const char* key :
       {"config_hash", "verify_rule", "lossless", "draft_kind", "draft_length", "effective_yaml", "seed"}) {
    settings.erase(key);
  }
  settings["processor"] = processor_name();
  settings["seed"] = report.seed;
  settings["prompts"] = report.prompts.size();
  settings["repeats"] = report.repeats;
  settings["noisy_share"] = kNoisyShare;
  settings["confidence"] = kConfidence;
  return settings;
}

std::string field(const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : ""; }

// Quoted where a comma, a quote or a line's end would break the row.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

// '#' up to the lower end of the interval, '~' within it, '|' where plain decoding stands.
std::string bar(const SpeedUp& s) {
  const auto place = [](double value) {
    return std::clamp(static_cast<int>(std::lround(kBarsPerUnit * value)), 0, kLongestBar);
  };
  const int sure = place(s.low.value_or(s.value)), end = place(s.high.value_or(s.value));
  std::string text = std::string(static_cast<std::size_t>(sure), '#');
  text.append(static_cast<std::size_t>(std::max(0, end - sure)), '~');
  if (text.size() < kBarsPerUnit) text.resize(kBarsPerUnit, ' ');
  text.insert(text.begin() + kBarsPerUnit, '|');
  return text;
}

std::string shown(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

std::string interval(const CellFigures& f) { return low(f) ? fmt::format("{:.2f} .. {:.2f}", *low(f), *high(f)) : "-"; }

std::string line_of(const SweepReport& report, const CellFigures& f) {
  const SweepCell& cell = report.cells[f.cell];
  const PromptFigures* worst = f.worst();
  const std::string setting = cell.plain()
                                  ? fmt::format("{:<8}{:<7}{:<10}{:<10}", "none", "", "", "")
                                  : fmt::format("{:<8}{:<7}{:<10}{:<10}", cell.config.draft.kind, length_of(cell),
                                                cell.config.draft.min_probability, cell.config.verify.rule);
  return fmt::format("{}{:>9}  {:>13}{:>7}{:>10}{:>9}{:>7}{:>7}  {}\n", setting, shown(speedup(f), 2), interval(f),
                     shown(worst ? std::optional(worst->speedup) : std::nullopt, 2),
                     shown(tokens_a_second(f.drafted), 1), shown(acceptance(f.drafted), 2),
                     shown(tokens_a_step(f.drafted), 2), f.noisy > 0 ? fmt::format("{}!", f.noisy) : "",
                     f.speedup ? bar(*f.speedup) : "");
}

std::string table(const SweepReport& report, double temperature) {
  std::vector<const CellFigures*> rows;
  for (const CellFigures& f : report.figures) {
    if (report.cells[f.cell].config.sampling.temperature == temperature) rows.push_back(&f);
  }
  std::ranges::stable_sort(rows, std::greater{}, [](const CellFigures* f) { return speedup(*f).value_or(0); });
  std::string text = fmt::format("temperature {}\n{:<8}{:<7}{:<10}{:<10}{:>9}  {:>13}{:>7}{:>10}{:>9}{:>7}{:>7}\n",
                                 temperature, "kind", "length", "threshold", "rule", "speed-up",
                                 fmt::format("{:.0f} % interval", 100 * kConfidence), "worst", "tokens/s", "accepted",
                                 "a step", "noisy");
  for (const CellFigures* f : rows) text += line_of(report, *f);
  return text;
}

std::string faults_text(const SweepReport& report) {
  std::string text;
  for (const CellFigures& f : report.figures) {
    const std::string name = report.cells[f.cell].name();
    for (const SweepPair* pair : f.differing) {
      text += fmt::format("DIFFERS: {}: prompt {}, repeat {}: another text than plain decoding's, from token {} on\n",
                          name, pair->prompt, pair->repeat, *pair->differs_at);
    }
    for (const SweepPair* pair : f.failed) {
      text += fmt::format("FAILED: {}: prompt {}, repeat {}: {}\n", name, pair->prompt, pair->repeat, pair->error);
    }
  }
  return text;
}

std::string winner_text(const SweepReport& report, const Winner& winner) {
  const std::string where =
      fmt::format("fastest{} at temperature {}: ", report.missing > 0 ? " so far" : "", winner.temperature);
  if (winner.figures == nullptr) return where + "plain decoding: no drafts were faster\n";
  std::string text = where + fmt::format("{}: {:.2f} times plain", report.cells[winner.figures->cell].name(),
                                         winner.figures->speedup->value);
  if (!make_verifier(report.cells[winner.figures->cell].config.verify.rule)->lossless()) text += " (lossy)";
  if (!winner.as_good.empty()) text += fmt::format("; {} more may be as fast", winner.as_good.size());
  return text + "\n";
}

}  // namespace

std::size_t SweepReport::faults() const {
  std::size_t count = 0;
  for (const CellFigures& f : figures) count += f.differing.size() + f.failed.size();
  return count;
}

Json sweep_json(const SweepReport& report) {
  Json json = {{"settings", common_settings(report)},
               {"pairs_wanted", report.wanted()},
               {"pairs_done", report.done()},
               {"faults", report.faults()},
               {"cells", Json::array()},
               {"winners", Json::array()},
               {"pairs", Json::array()}};
  for (const CellFigures& f : report.figures) json["cells"].push_back(cell_json(report, f));
  for (const Winner& winner : winners(report.cells, report.figures)) {
    json["winners"].push_back(winner_json(report, winner));
  }
  const std::vector<bool> noisy = noisy_pairs(report.pairs);
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    json["pairs"].push_back(to_json(report.pairs[i]));
    json["pairs"].back()["noisy"] = static_cast<bool>(noisy[i]);
  }
  return json;
}

std::string sweep_csv(const SweepReport& report) {
  std::string csv =
      "label,config,set,target,draft,backend,threads,processor,kind,length,threshold,rule,temperature,prompts,repeats,"
      "pairs,"
      "noisy,faults,speedup,speedup_low,speedup_high,speedup_with_noisy,worst_speedup,worst_prompt,tokens_per_second,"
      "plain_tokens_per_second,acceptance_rate,mean_accepted_length,ttft_seconds,plain_ttft_seconds\n";
  for (const CellFigures& f : report.figures) {
    const Config& c = report.cells[f.cell].config;
    const PromptFigures* worst = f.worst();
    const auto counted = static_cast<double>(f.drafted.answers);
    const std::vector<std::string> fields{field(report.label),
                                          field(c.source),
                                          field(report.settings),
                                          field(file_name(c.target.model)),
                                          field(c.draft.uses_model() ? file_name(c.draft.model) : ""),
                                          field(std::string(report.session.backend().name())),
                                          fmt::to_string(report.session.backend().threads()),
                                          field(processor_name()),
                                          c.draft.kind,
                                          length_of(report.cells[f.cell]),
                                          fmt::to_string(c.draft.min_probability),
                                          c.verify.rule,
                                          fmt::to_string(c.sampling.temperature),
                                          fmt::to_string(f.prompts.size()),
                                          fmt::to_string(report.repeats),
                                          fmt::to_string(f.pairs),
                                          fmt::to_string(f.noisy),
                                          fmt::to_string(f.differing.size() + f.failed.size()),
                                          field(speedup(f)),
                                          field(low(f)),
                                          field(high(f)),
                                          field(f.speedup_of_all),
                                          field(worst ? std::optional(worst->speedup) : std::nullopt),
                                          field(worst ? report.prompts[worst->prompt].id : ""),
                                          field(tokens_a_second(f.drafted)),
                                          field(tokens_a_second(f.plain)),
                                          field(acceptance(f.drafted)),
                                          field(tokens_a_step(f.drafted)),
                                          field(ratio(f.drafted.ttft_seconds, counted)),
                                          field(ratio(f.plain.ttft_seconds, counted))};
    csv += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return csv;
}

std::string sweep_text(const SweepReport& report) {
  const std::vector<Winner> found = winners(report.cells, report.figures);
  std::string text;
  for (const Winner& winner : found) text += table(report, winner.temperature) + "\n";
  text += faults_text(report);
  for (const Winner& winner : found) text += winner_text(report, winner);
  std::size_t noisy = 0;
  for (const CellFigures& f : report.figures) noisy += static_cast<std::size_t>(f.noisy);
  if (noisy > 0) {
    text += fmt::format(
        "{} of {} pairs are noisy (!): off the median of their neighbours by more than {:.0f} %; they count only where "
        "a "
        "prompt has no others\n",
        noisy, report.done(), 100 * kNoisyShare);
  }
  if (report.missing > 0) {
    text += fmt::format("not complete: {} of {} pairs are there\n", report.done(), report.wanted());
  }
  return text;
}

std::string winner_yaml(const SweepReport& report, const Winner& winner) {
  std::string yaml = "# Written by tandem sweep: " + winner_text(report, winner);
  if (winner.figures != nullptr) return yaml + to_yaml(report.cells[winner.figures->cell].config);
  const auto cell = std::ranges::find_if(
      report.cells, [&](const SweepCell& each) { return each.config.sampling.temperature == winner.temperature; });
  Config config = cell->config;
  config.draft.kind = "none";
  return yaml + to_yaml(config);
}

}  // namespace tandem
