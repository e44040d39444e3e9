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

// What passes took on average: short ones often take a little longer, which a median would not see. A pass beyond a few
// medians was interrupted, and tells no more than that.
double usual(std::vector<float> seconds) {
  constexpr double kMost = 3;
  const double most = kMost * median(seconds);
  double sum = 0;
  for (const float value : seconds) sum += std::min(double{value}, most);
  return sum / static_cast<double>(seconds.size());
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
  costs.target = target.curve(usual(times.target_steps));
  if (!times.draft_steps.empty()) {
    costs.draft = draft.curve(draft_share * usual(times.draft_steps), {answer.prompt, times.draft_prompt});
  }
  costs.sample = times.sample_a_step;
  costs.other = times.other_a_step;
  return costs;
}

}  // namespace tandem
