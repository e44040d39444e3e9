#include "draft/cost_model.h"

#include <algorithm>

#include "src/base/error.h"

namespace tandem {
namespace {

constexpr double kFollowAll = 1.0 / 64;  // share of a surprise that the whole curve takes in the long run
constexpr double kFollowOne = 1.0 / 16;  // and the row count that was seen
constexpr double kFirstWeight = 4;       // passes that the curve counts for when the first one is seen
constexpr int kOfLate = 64;              // passes
constexpr double kLeastSlope = 0.5;      // of the measured curve's that is always believed in
// A pass beyond this was interrupted or timed wrongly, and tells no more than this.
constexpr double kLeastRatio = 0.5, kMostRatio = 2;

}  // namespace

PassCosts::PassCosts(std::span<const RowSeconds> measured) {
  int rows = 0;
  for (const RowSeconds& point : measured) {
    if (point.rows <= rows || !(point.seconds > 0)) {
      fail(ErrorKind::input, "cost of a pass: expected ascending rows and positive seconds, got {} rows in {} s",
           point.rows, point.seconds);
    }
    rows = point.rows;
  }
  if (measured.empty()) fail(ErrorKind::input, "cost of a pass: expected at least one measurement, got none");

  RowSeconds last = measured.front();
  double slope = last.seconds / last.rows;
  const auto fill = [&](int from, int to) {
    for (int i = from; i <= std::min(to, kMaxTreeNodes); ++i) by_rows_[i] = last.seconds + slope * (i - last.rows);
  };
  std::fill(by_rows_.begin(), by_rows_.begin() + std::min(last.rows, kMaxTreeNodes) + 1, last.seconds);
  for (RowSeconds point : measured.subspan(1)) {
    point.seconds = std::max(point.seconds, last.seconds);
    slope = (point.seconds - last.seconds) / (point.rows - last.rows);
    fill(last.rows, point.rows);
    last = point;
  }
  fill(last.rows, kMaxTreeNodes);
  seconds_a_row_beyond_ = slope;
  measured_ = by_rows_;
}

double PassCosts::seconds(int rows) const {
  return rows <= kMaxTreeNodes ? by_rows_[std::max(rows, 0)]
                               : by_rows_[kMaxTreeNodes] + seconds_a_row_beyond_ * (rows - kMaxTreeNodes);
}

void PassCosts::observe_ratio(double ratio) {
  // A mean of all passes at first: a curve saved in another state of the machine is put right within some steps.
  const double share = std::max(kFollowAll, 1 / (kFirstWeight + ++passes_seen_));
  const double factor = 1 + share * (std::clamp(ratio, kLeastRatio, kMostRatio) - 1);
  for (double& cost : by_rows_) cost *= factor;
  seconds_a_row_beyond_ *= factor;
}

void PassCosts::observe(int rows, double seconds) {
  if (!(this->seconds(rows) > 0) || !(seconds > 0)) return;
  observe_ratio(seconds / this->seconds(rows));
  if (rows < 1 || rows > kMaxTreeNodes) return;
  const double surprise = std::clamp(seconds / this->seconds(rows), kLeastRatio, kMostRatio) - 1;
  for (int i = 0; i <= kMaxTreeNodes; ++i) {
    if (i == rows || !seen_of_late(i)) by_rows_[i] *= 1 + kFollowOne * surprise;
  }
  last_seen_[rows] = passes_seen_;
  keep_rising(rows);
}

bool PassCosts::seen_of_late(int rows) const {
  return last_seen_[rows] > 0 && passes_seen_ - last_seen_[rows] < kOfLate;
}

// The newest row count is right about its neighbours. Beyond those seen of late some of the slope stays: if it all
// went, rows would seem free, every pass would take some, and none would ever tell what a pass without them costs.
void PassCosts::keep_rising(int rows) {
  const double least_slope = kLeastSlope * by_rows_[rows] / measured_[rows];
  int lowest = 1, highest = kMaxTreeNodes;  // seen of late; `rows` is
  while (!seen_of_late(lowest)) ++lowest;
  while (!seen_of_late(highest)) --highest;
  for (int i = rows - 1; i >= 0; --i) {
    const double rise = i < lowest ? least_slope * (measured_[i + 1] - measured_[i]) : 0;
    by_rows_[i] = std::min(by_rows_[i], by_rows_[i + 1] - rise);
  }
  for (int i = rows + 1; i <= kMaxTreeNodes; ++i) {
    const double rise = i > highest ? least_slope * (measured_[i] - measured_[i - 1]) : 0;
    by_rows_[i] = std::max(by_rows_[i], by_rows_[i - 1] + rise);
  }
}

}  // namespace tandem
