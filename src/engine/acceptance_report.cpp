#include "src/engine/acceptance_report.h"

#include <algorithm>
#include <cmath>

#include "src/engine/trace.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kListed = 8;  // ids that differ

Json rate(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json(nullptr);
}

Json interval(const std::optional<Interval>& found) { return found ? Json({found->low, found->high}) : Json(nullptr); }

Json expected_json(const ExpectedCounts& c) {
  const auto tested = static_cast<double>(c.tested);
  const double error = std::sqrt(c.variance);
  Json json = {{"tested", c.tested},
               {"accepted", c.accepted},
               {"acceptance_rate", rate(c.accepted, c.tested)},
               {"expected_rate", nullptr},
               {"standard_error", nullptr}};
  if (c.tested > 0) {
    json["expected_rate"] = c.expected / tested;
    json["standard_error"] = error / tested;
  }
  return json;
}

Json group_json(const AcceptanceGroup& group) {
  const Metrics& m = group.counts.metrics;
  return {{"answers", group.counts.answers},
          {"generated_tokens", m.generated},
          {"steps", m.steps},
          {"proposed", m.total.proposed},
          {"tested", m.total.tested},
          {"accepted", m.total.accepted},
          {"rejected", m.total.rejected},
          {"untested", m.total.untested},
          {"cut", m.cut},
          {"acceptance_rate", rate(m.total.accepted, m.total.tested)},
          {"acceptance_interval", interval(wilson_interval(m.total.accepted, m.total.tested))},
          {"acceptance_interval_over_prompts", interval(bootstrap_interval(group.accepted_of_tested))},
          {"mean_accepted_length", rate(m.total.accepted + m.steps, m.steps)},
          {"mean_accepted_length_interval_over_prompts", interval(bootstrap_interval(group.tokens_of_steps))},
          {"sampled", expected_json(group.counts.sampled)},
          {"deterministic", expected_json(group.counts.deterministic)},
          {"compared", group.counts.compared},
          {"top1_agreement", rate(group.counts.same_top, group.counts.compared)}};
}

Json positions_json(const AcceptanceCounts& counts) {
  Json list = Json::array();
  for (std::size_t i = 0; i < counts.positions.size() && counts.positions[i].drafted > 0; ++i) {
    const PositionCounts& place = counts.positions[i];
    list.push_back({{"position", i + 1},
                    {"room", place.room},
                    {"drafted", place.drafted},
                    {"tested", place.tested},
                    {"accepted", place.accepted},
                    {"conditional", rate(place.accepted, place.tested)},
                    {"conditional_interval", interval(wilson_interval(place.accepted, place.tested))},
                    {"unconditional", rate(place.accepted, place.drafted)},
                    {"unconditional_interval", interval(wilson_interval(place.accepted, place.drafted))}});
  }
  return list;
}

Json bins_json(const std::array<BinCounts, kConfidenceBins>& bins) {
  Json list = Json::array();
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const BinCounts& bin = bins[i];
    if (bin.tested == 0) continue;
    list.push_back({{"low", i == 0 ? 0.0 : kConfidenceBorders[i - 1]},
                    {"high", i < kConfidenceBorders.size() ? kConfidenceBorders[i] : 1.0},
                    {"tested", bin.tested},
                    {"accepted", bin.accepted},
                    {"mean_confidence", bin.confidence / static_cast<double>(bin.tested)},
                    {"acceptance_rate", rate(bin.accepted, bin.tested)},
                    {"acceptance_interval", interval(wilson_interval(bin.accepted, bin.tested))}});
  }
  return list;
}

Json sources_json(const AcceptanceCounts& counts) {
  Json list = Json::array();
  for (std::size_t i = 0; i < counts.bins.size(); ++i) {
    const DraftCounts& c = counts.metrics.by_source[i];
    if (c.proposed == 0) continue;
    list.push_back({{"source", name_of(static_cast<DraftSource>(i))},
                    {"proposed", c.proposed},
                    {"tested", c.tested},
                    {"accepted", c.accepted},
                    {"acceptance_rate", rate(c.accepted, c.tested)},
                    {"acceptance_interval", interval(wilson_interval(c.accepted, c.tested))},
                    {"bins", bins_json(counts.bins[i])}});
  }
  return list;
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json forecast_json(const AcceptanceCounts& counts, const CostModel& costs) {
  const std::vector<LengthForecast> forecasts = forecast_lengths(counts, costs);
  const MeasuredSteps measured = measured_steps(counts, costs);
  Json lengths = Json::array();
  for (const LengthForecast& f : forecasts) {
    lengths.push_back({{"length", f.length},
                       {"tokens_a_step", f.tokens},
                       {"seconds_a_step", f.seconds},
                       {"speed", f.speed},
                       {"break_even", f.length > 0 ? finite(f.break_even) : Json(nullptr)}});
  }
  return {{"best_length", best_of(forecasts).length},
          {"best_speed", best_of(forecasts).speed},
          {"measured_seconds_a_step", measured.seconds},
          {"measured_speed", measured.speed},
          {"lengths", lengths}};
}

}  // namespace

void AcceptanceGroup::add(const AcceptanceCounts& answer) {
  counts.add(answer);
  const Metrics& m = answer.metrics;
  accepted_of_tested.push_back({static_cast<double>(m.total.accepted), static_cast<double>(m.total.tested)});
  tokens_of_steps.push_back({static_cast<double>(m.total.accepted + m.steps), static_cast<double>(m.steps)});
}

void TemperatureAcceptance::add(std::string_view task, const AcceptanceCounts& answer) {
  all.add(answer);
  auto found = std::find_if(tasks.begin(), tasks.end(), [&](const Task& known) { return known.name == task; });
  if (found == tasks.end()) found = tasks.insert(tasks.end(), {std::string(task), {}});
  found->group.add(answer);
}

VocabularyReport compare_vocabularies(const Config& config) {
  const auto target = GgufFile::open(config.target.model), draft = GgufFile::open(config.draft.model);
  return {target->name(), draft->name(),
          compare_vocabularies(read_vocabulary(*target), read_vocabulary(*draft), kListed), config.draft.retokenize};
}

Json to_json(const VocabularyReport& report) {
  static constexpr const char* kMatches[] = {"same", "padding", "different"};
  const VocabularyComparison& c = report.comparison;
  Json first = Json::array();
  for (const TokenDifference& d : c.first) {
    first.push_back({{"id", d.id}, {"target", to_valid_utf8(d.target)}, {"draft", to_valid_utf8(d.draft)}});
  }
  return {{"target", to_valid_utf8(report.target)},
          {"draft", to_valid_utf8(report.draft)},
          {"target_size", c.target_size},
          {"draft_size", c.draft_size},
          {"match", kMatches[static_cast<int>(c.match())]},
          {"refused", !report.fits()},
          {"differing", c.differing},
          {"padding", c.padding},
          {"shared_pieces", c.shared_pieces},
          {"first_differences", first}};
}

Json to_json(const TemperatureAcceptance& found, const CostModel& costs) {
  Json tasks = Json::array();
  for (const TemperatureAcceptance::Task& task : found.tasks) {
    tasks.push_back({{"task", to_valid_utf8(task.name)}});
    tasks.back().update(group_json(task.group));
  }
  return {{"temperature", found.temperature},
          {"all", group_json(found.all)},
          {"tasks", tasks},
          {"positions", positions_json(found.all.counts)},
          {"sources", sources_json(found.all.counts)},
          {"forecast", forecast_json(found.all.counts, costs)}};
}

}  // namespace tandem
