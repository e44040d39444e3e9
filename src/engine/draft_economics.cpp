#include "src/engine/draft_economics.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Draws and acceptance, which plain decoding needs for each of its tokens too.
double sample_seconds_a_token(const Metrics& metrics) {
  return metrics.generated > 0 ? metrics.seconds.sample / static_cast<double>(metrics.generated + metrics.cut) : 0;
}

// What the draft read beyond a token a pass, for each token that the steps committed.
double reading_seconds_a_token(const AcceptanceCounts& counts, const PassCosts& draft) {
  double seconds = 0;
  for (const auto& [feed, passes] : counts.catch_up) {
    seconds += static_cast<double>(passes) * (draft.seconds(feed) - draft.seconds(1));
  }
  const std::int64_t tokens = counts.metrics.total.accepted + counts.metrics.steps;
  return tokens > 0 ? seconds / static_cast<double>(tokens) : 0;
}

double mean_pass_seconds(const std::array<std::int64_t, kMaxTreeNodes + 1>& steps_by_rows, const PassCosts& target) {
  std::int64_t steps = 0;
  double seconds = 0;
  for (std::size_t rows = 1; rows < steps_by_rows.size(); ++rows) {
    steps += steps_by_rows[rows];
    seconds += static_cast<double>(steps_by_rows[rows]) * target.seconds(static_cast<int>(rows));
  }
  return steps > 0 ? seconds / static_cast<double>(steps) : target.seconds(1);
}

}  // namespace

double expected_tokens(double a, double length) {
  return a >= 1 ? length + 1 : (1 - std::pow(a, length + 1)) / (1 - a);
}

double break_even(double cost, double length) {
  if (expected_tokens(1, length) < cost) return INFINITY;
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (expected_tokens(middle, length) < cost ? low : high) = middle;
  }
  return high;
}

std::vector<LengthForecast> forecast_lengths(const AcceptanceCounts& counts, const CostModel& costs) {
  const double single = costs.target.seconds(1), sample = sample_seconds_a_token(counts.metrics);
  const double reading = reading_seconds_a_token(counts, costs.draft);
  std::vector<LengthForecast> forecasts{{.seconds = single + sample}};
  double tokens = 1, drafted = 0, draft_seconds = 0;
  for (std::size_t length = 1; length < counts.positions.size(); ++length) {
    const PositionCounts& place = counts.positions[length - 1];
    if (place.tested == 0) break;
    tokens += share(place.accepted, place.room);
    drafted += share(place.drafted, place.room);
    draft_seconds += share(place.passes, place.room) * costs.draft.seconds(1);
    const double passes = draft_seconds + mean_pass_seconds(counts.steps_by_length_and_rows[length], costs.target);
    const double seconds = passes + (sample + reading) * tokens;
    // What goes with the tokens: draws take both sides as long, reading leaves less of a plain token's time to earn.
    const double earned = single - reading;
    forecasts.push_back({static_cast<int>(length), tokens, seconds, tokens * (single + sample) / seconds,
                         earned > 0 ? break_even(passes / earned, drafted) : INFINITY});
  }
  return forecasts;
}

const LengthForecast& best_of(const std::vector<LengthForecast>& forecasts) {
  return *std::max_element(forecasts.begin(), forecasts.end(),
                           [](const auto& a, const auto& b) { return a.speed < b.speed; });
}

MeasuredSteps measured_steps(const AcceptanceCounts& counts, const CostModel& costs) {
  const Metrics& m = counts.metrics;
  if (m.steps == 0) return {};
  const double sample = sample_seconds_a_token(m);
  // The first token of each answer comes without a step.
  const double seconds = m.seconds.draft + m.seconds.verify + m.seconds.sample + m.seconds.rollback -
                         sample * static_cast<double>(counts.answers);
  const auto tokens = static_cast<double>(m.total.accepted + m.steps);
  return {seconds / static_cast<double>(m.steps), tokens * (costs.target.seconds(1) + sample) / seconds};
}

}  // namespace tandem
