#include "src/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem {

void fill_rope_table(std::span<float> table, int positions, int dims, double base, std::span<const double> divisors,
                     double magnitude) {
  const auto half = static_cast<std::size_t>(dims / 2);
  const std::span<float> cos = table.first(table.size() / 2), sin = table.last(table.size() / 2);
  for (std::size_t i = 0; i < half; ++i) {
    const double divisor = divisors.empty() ? 1 : divisors[i];
    const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / dims) / divisor;
    for (int position = 0; position < positions; ++position) {
      const std::size_t at = static_cast<std::size_t>(position) * half + i;
      cos[at] = static_cast<float>(magnitude * std::cos(position * frequency));
      sin[at] = static_cast<float>(magnitude * std::sin(position * frequency));
    }
  }
}

std::vector<double> yarn_divisors(const Yarn& yarn, double base, int dims) {
  // Index of the pair that turns `turns` times over the original context.
  const auto pair_of = [&](double turns) {
    return dims * std::log(yarn.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  // Whole indices, and the limits of the published code, which counts dims where there are dims / 2 pairs.
  const double low = std::max(0.0, std::floor(pair_of(yarn.beta_fast)));
  const double high = std::min(dims - 1.0, std::ceil(pair_of(yarn.beta_slow)));
  const double width = std::max(0.001, high - low);
  std::vector<double> divisors(static_cast<std::size_t>(dims / 2));
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
    divisors[i] = 1 / (slowed / yarn.factor + (1 - slowed));
  }
  return divisors;
}

double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1 : 1 + 0.1 * multiplier * std::log(factor);
}

}  // namespace tandem
