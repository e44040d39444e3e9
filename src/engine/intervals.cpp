#include "src/engine/intervals.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/base/random.h"

namespace tandem {
namespace {

constexpr double kDeviations = 1.959963984540054;  // of a normal variable, outside which 5 % lie
constexpr int kSamples = 2000;

}  // namespace

std::optional<Interval> wilson_interval(std::int64_t successes, std::int64_t trials) {
  if (trials <= 0) return std::nullopt;
  const auto n = static_cast<double>(trials);
  const double rate = static_cast<double>(successes) / n, z2 = kDeviations * kDeviations;
  const double middle = (rate + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kDeviations / (1 + z2 / n) * std::sqrt(rate * (1 - rate) / n + z2 / (4 * n * n));
  return Interval{std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::optional<Interval> bootstrap_interval(std::span<const Share> groups) {
  std::vector<Share> usable;
  for (const Share& group : groups) {
    if (group.whole > 0) usable.push_back(group);
  }
  if (usable.size() < 2) return std::nullopt;
  std::vector<double> ratios;
  ratios.reserve(kSamples);
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    Share sum{};
    for (std::uint32_t i = 0; i < usable.size(); ++i) {
      const double uniform = uniform_from_word(philox({sample, i, 0, 0}, {0, 0})[0]);
      const Share& drawn = usable[static_cast<std::size_t>(uniform * static_cast<double>(usable.size()))];
      sum.part += drawn.part;
      sum.whole += drawn.whole;
    }
    ratios.push_back(sum.part / sum.whole);
  }
  std::sort(ratios.begin(), ratios.end());
  constexpr int kTail = kSamples / 40;
  return Interval{ratios[kTail - 1], ratios[kSamples - kTail]};
}

}  // namespace tandem
