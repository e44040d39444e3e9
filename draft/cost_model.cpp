#include "draft/cost_model.h"

#include <algorithm>

#include "src/base/error.h"

namespace tandem {
namespace {

constexpr double kFollowAll = 1.0 / 64;  // share of a surprise that the whole curve takes
constexpr double kFollowOne = 1.0 / 16;  // and the row count that was seen
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
}

double PassCosts::seconds(int rows) const {
  return rows <= kMaxTreeNodes ? by_rows_[std::max(rows, 0)]
                               : by_rows_[kMaxTreeNodes] + seconds_a_row_beyond_ * (rows - kMaxTreeNodes);
}

void PassCosts::observe_ratio(double ratio) {
  const double factor = 1 + kFollowAll * (std::clamp(ratio, kLeastRatio, kMostRatio) - 1);
  for (double& cost : by_rows_) cost *= factor;
  seconds_a_row_beyond_ *= factor;
}

void PassCosts::observe(int rows, double seconds) {
  const double expected = this->seconds(rows);
  if (!(expected > 0) || !(seconds > 0)) return;
  observe_ratio(seconds / expected);
  if (rows < 1 || rows > kMaxTreeNodes) return;
  const double surprise = std::clamp(seconds / expected, kLeastRatio, kMostRatio) - 1;
  by_rows_[rows] *= 1 + kFollowOne * surprise;
  for (int i = rows - 1; i >= 0; --i) by_rows_[i] = std::min(by_rows_[i], by_rows_[rows]);
  for (int i = rows + 1; i <= kMaxTreeNodes; ++i) by_rows_[i] = std::max(by_rows_[i], by_rows_[rows]);
}

}  // namespace tandem
