#include "src/engine/replay_costs.h"

#include <algorithm>

namespace tandem {
namespace {

template <typename T>
double median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void RowRatios::add(const std::vector<RecordedPass>& passes) {
  for (const RecordedPass& pass : passes) {
    if (!(pass.seconds > 0) || !(pass.single_seconds > 0)) continue;
    auto at = std::ranges::lower_bound(by_rows_, pass.rows, {}, &Ratios::rows);
    if (at == by_rows_.end() || at->rows != pass.rows) at = by_rows_.insert(at, {pass.rows, {}});
    at->values.push_back(double{pass.seconds} / pass.single_seconds);
  }
}

PassCosts RowRatios::curve(double single, RowSeconds reading) const {
  std::vector<RowSeconds> costs{{1, single}};
  for (const Ratios& ratios : by_rows_) costs.push_back({ratios.rows, single * median(ratios.values)});
  if (reading.rows > costs.back().rows && reading.seconds > 0) costs.push_back(reading);
  return PassCosts(costs);
}

ReplayCosts replay_costs(const RecordedAnswer& answer, const RowRatios& target, const RowRatios& draft,
                         double draft_share) {
  const RecordedTimes& times = answer.times;
  ReplayCosts costs;
  costs.target = target.curve(median(times.target_steps));
  if (!times.draft_steps.empty()) {
    costs.draft = draft.curve(draft_share * median(times.draft_steps), {answer.prompt, times.draft_prompt});
  }
  costs.sample = times.sample_a_step;
  costs.other = times.other_a_step;
  return costs;
}

}  // namespace tandem
