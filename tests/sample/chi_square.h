// Pearson's chi-square against a known law.
#pragma once
#include <cmath>
#include <cstddef>
#include <vector>

namespace tandem::testing {

struct ChiSquare {
  double statistic = 0;
  double limit = 0;  // the 1 - 1e-6 point of the chi-square law with the degrees of freedom left after pooling
  bool fits() const { return statistic < limit; }
};

// The 1 - 1e-6 point (Wilson-Hilferty; 4.7534 is the normal law's).
inline double chi_square_limit(double freedom) {
  const double spread = 2 / (9 * freedom);
  const double root = 1 - spread + 4.7534 * std::sqrt(spread);
  return freedom * root * root * root;
}

// `counts` and `law` [cells]. Cells expected fewer than 5 times are pooled; a count in a cell of probability 0 fails.
inline ChiSquare chi_square(const std::vector<double>& counts, const std::vector<double>& law) {
  double total = 0, pooled_count = 0, pooled_expectation = 0;
  for (const double count : counts) total += count;
  ChiSquare result;
  double cells = 0;
  const auto add = [&](double count, double expectation) {
    result.statistic += (count - expectation) * (count - expectation) / expectation;
    cells += 1;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expectation = total * law[i];
    if (law[i] == 0 && counts[i] > 0) result.statistic += INFINITY;
    if (expectation < 5) {
      pooled_count += counts[i], pooled_expectation += expectation;
    } else {
      add(counts[i], expectation);
    }
  }
  if (pooled_expectation >= 5) add(pooled_count, pooled_expectation);
  result.limit = chi_square_limit(cells - 1);
  return result;
}

}  // namespace tandem::testing
