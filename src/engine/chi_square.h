// Pearson's chi-square test, with the power that it has.
#pragma once
#include <span>

namespace tandem {

// Regularised upper incomplete gamma function Q(a, x), a > 0, x >= 0; relative error below 1e-12 down to 1e-300 (series
// and continued fraction: Abramowitz and Stegun 6.5.29 and 6.5.31).
double upper_gamma(double a, double x);

// Sum of (count - expectation)^2 / expectation; a count where nothing is expected makes it infinite.
double chi_square(std::span<const double> counts, std::span<const double> expectations);

// Chance that a true law gives `statistic` or more; 1 without freedom.
double chi_square_p_value(double statistic, int freedom);

// Chance that a Poisson count of this mean is `count` or more.
double poisson_p_value(double count, double mean);

// Smallest total variation of a wrong law that `draws` draws over freedom + 1 cells find at `level` with probability
// `power`: the statistic's non-centrality is at least 4 * draws * TV^2 (Cauchy-Schwarz).
double detectable_total_variation(double draws, int freedom, double level, double power);

}  // namespace tandem
