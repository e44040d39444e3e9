// Passes over a row of logits, in blocks that a compiler turns into vector instructions. NaN is never the largest and
// above nothing.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>

namespace tandem {

inline constexpr std::size_t kScanBlock = 32;

// The largest value, -inf when there is none above it.
inline float largest(std::span<const float> row) {
  std::array<float, kScanBlock> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kScanBlock <= row.size(); i += kScanBlock) {
    for (std::size_t lane = 0; lane < kScanBlock; ++lane) {
      lanes[lane] = row[i + lane] > lanes[lane] ? row[i + lane] : lanes[lane];
    }
  }
  float best = *std::max_element(lanes.begin(), lanes.end());
  for (; i < row.size(); ++i) best = row[i] > best ? row[i] : best;
  return best;
}

// In eight sums that need not wait for each other; the order of adding follows from the size alone.
inline double sum(std::span<const double> values) {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += values[i + lane];
  }
  for (; i < values.size(); ++i) sums[0] += values[i];
  double total = 0;
  for (const double part : sums) total += part;
  return total;
}

// Calls visit(index) in ascending order for every value above `bar` (a reference: the visit may raise it), skipping
// blocks without one.
template <typename Visit>
void each_above(std::span<const float> row, const float& bar, Visit&& visit) {
  std::size_t i = 0;
  for (; i + kScanBlock <= row.size(); i += kScanBlock) {
    const float limit = bar;
    unsigned above = 0;
    for (std::size_t lane = 0; lane < kScanBlock; ++lane) above |= row[i + lane] > limit ? 1u : 0u;
    if (above == 0) continue;
    for (std::size_t lane = 0; lane < kScanBlock; ++lane) {
      if (row[i + lane] > bar) visit(i + lane);
    }
  }
  for (; i < row.size(); ++i) {
    if (row[i] > bar) visit(i);
  }
}

}  // namespace tandem
