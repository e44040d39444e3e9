#include "src/engine/chi_square.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tandem::test {
namespace {

TEST(UpperGamma, HasItsClosedForms) {
  for (const double x : {1e-6, 0.3, 1.0, 2.0, 7.5, 40.0, 300.0}) {
    EXPECT_NEAR(upper_gamma(1, x) / std::exp(-x), 1, 1e-9) << x;
    EXPECT_NEAR(upper_gamma(3, x) / (std::exp(-x) * (1 + x + x * x / 2)), 1, 1e-9) << x;
    EXPECT_NEAR(upper_gamma(0.5, x) / std::erfc(std::sqrt(x)), 1, 1e-9) << x;
  }
  EXPECT_EQ(upper_gamma(2.5, 0), 1);
}

// Q(a + 1, x) = Q(a, x) + x^a e^-x / Gamma(a + 1), across the border between series and continued fraction.
TEST(UpperGamma, FollowsItsRecurrence) {
  for (double a = 0.5; a < 80; a += 3.5) {
    for (double x = 0.25; x < 160; x *= 1.4) {
      const double step = std::exp(a * std::log(x) - x - std::lgamma(a + 1));
      EXPECT_NEAR(upper_gamma(a + 1, x), upper_gamma(a, x) + step, 1e-12) << a << ", " << x;
    }
  }
}

TEST(ChiSquarePValue, HasTheTablesPoints) {
  EXPECT_NEAR(chi_square_p_value(3.841459, 1), 0.05, 1e-7);
  EXPECT_NEAR(chi_square_p_value(23.209251, 10), 0.01, 1e-8);
  EXPECT_NEAR(chi_square_p_value(140.169489, 100), 0.005, 1e-7);
  EXPECT_EQ(chi_square_p_value(INFINITY, 3), 0);
  EXPECT_EQ(chi_square_p_value(0, 0), 1);
}

TEST(ChiSquare, CountsWhereNothingIsExpectedAreInfinitelyWrong) {
  EXPECT_DOUBLE_EQ(chi_square(std::vector<double>{8, 12, 0}, std::vector<double>{10, 10, 0}), 0.8);
  EXPECT_EQ(chi_square(std::vector<double>{10, 1}, std::vector<double>{11, 0}), INFINITY);
}

TEST(PoissonPValue, IsTheTail) {
  EXPECT_EQ(poisson_p_value(0, 3), 1);
  EXPECT_NEAR(poisson_p_value(1, 0.25), 1 - std::exp(-0.25), 1e-14);
  EXPECT_NEAR(poisson_p_value(3, 2), 1 - std::exp(-2) * (1 + 2 + 2), 1e-14);
  EXPECT_EQ(poisson_p_value(4, 0), 0);
}

// Non-centralities for level 1e-6 and power .99 (algorithms.md, section 9), which are rounded up.
TEST(DetectableVariation, IsThatOfTheKnownNonCentralities) {
  for (const auto& [freedom, noncentrality] : {std::pair{7, 70.0}, {26, 94.0}, {63, 122.0}, {124, 154.0}}) {
    const double variation = detectable_total_variation(20000, freedom, 1e-6, 0.99);
    EXPECT_NEAR(4 * 20000 * variation * variation, noncentrality, 0.03 * noncentrality) << freedom;
  }
}

// The stated power is what draws from a law of that distance show: half of the cells richer, half poorer, where the
// bound that the formula rests on is an equality.
TEST(DetectableVariation, IsFoundAsOftenAsStated) {
  constexpr int kCells = 8, kDraws = 2000, kRuns = 2000;
  constexpr double kLevel = 1e-3, kPower = 0.9;
  const double variation = detectable_total_variation(kDraws, kCells - 1, kLevel, kPower);
  std::vector<double> wrong(kCells);
  for (int i = 0; i < kCells; ++i) wrong[i] = (1 + (i % 2 == 0 ? 2 : -2) * variation) / kCells;
  std::mt19937_64 random(5);
  std::discrete_distribution<int> draw(wrong.begin(), wrong.end());
  int found = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> counts(kCells);
    for (int i = 0; i < kDraws; ++i) ++counts[draw(random)];
    const double statistic = chi_square(counts, std::vector<double>(kCells, kDraws / kCells));
    found += chi_square_p_value(statistic, kCells - 1) < kLevel;
  }
  // 4 sigma of the binomial count, and 0.01 for the limit law.
  EXPECT_NEAR(found / double{kRuns}, kPower, 4 * std::sqrt(kPower * (1 - kPower) / kRuns) + 0.01);
}

}  // namespace
}  // namespace tandem::test
