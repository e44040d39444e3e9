#include "src/engine/chi_square.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace tandem {
namespace {

constexpr double kPrecision = 1e-15;
constexpr int kMostTerms = 100000;

// The root of a falling function that is >= 0 at 0.
template <typename Falling>
double root(Falling&& falling) {
  double low = 0, high = 1;
  while (falling(high) > 0) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (falling(middle) > 0 ? low : high) = middle;
  }
  return high;
}

// Chance that a chi-square variable of this non-centrality is at most `limit`: a Poisson mixture of central ones.
double noncentral_below(double limit, double freedom, double noncentrality) {
  double sum = 0;
  const double half = noncentrality / 2;
  const int last = static_cast<int>(half + 12 * std::sqrt(half + 1) + 30);
  for (int i = 0; i <= last; ++i) {
    const double weight = std::exp(i * std::log(half) - half - std::lgamma(i + 1.0));
    sum += weight * (1 - upper_gamma(freedom / 2 + i, limit / 2));
  }
  return sum;
}

}  // namespace

double upper_gamma(double a, double x) {
  if (x <= 0) return 1;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < kMostTerms && term > sum * kPrecision; ++n) {
      term *= x / (a + n);
      sum += term;
    }
    return 1 - scale * sum;
  }
  // Lentz's evaluation of the continued fraction.
  double b = x + 1 - a, c = std::numeric_limits<double>::max(), d = 1 / b, fraction = d;
  for (int n = 1; n < kMostTerms; ++n) {
    const double factor = -n * (n - a);
    b += 2;
    d = 1 / (factor * d + b);
    c = b + factor / c;
    const double change = c * d;
    fraction *= change;
    if (std::abs(change - 1) < kPrecision) break;
  }
  return scale * fraction;
}

double chi_square(std::span<const double> counts, std::span<const double> expectations) {
  double statistic = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double difference = counts[i] - expectations[i];
    if (difference != 0) statistic += difference * difference / expectations[i];
  }
  return statistic;
}

double chi_square_p_value(double statistic, int freedom) {
  if (freedom < 1) return 1;
  return std::isinf(statistic) ? 0 : upper_gamma(freedom / 2.0, statistic / 2);
}

double poisson_p_value(double count, double mean) { return count > 0 ? 1 - upper_gamma(count, mean) : 1; }

double detectable_total_variation(double draws, int freedom, double level, double power) {
  const double limit = root([&](double x) { return upper_gamma(freedom / 2.0, x / 2) - level; });
  const double noncentrality = root([&](double x) { return noncentral_below(limit, freedom, x) - (1 - power); });
  return std::sqrt(noncentrality / (4 * draws));
}

}  // namespace tandem
