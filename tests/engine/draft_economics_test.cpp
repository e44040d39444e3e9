// Expected speeds by draft length, on made-up acceptances and costs whose answers are known; and intervals.
#include "src/engine/draft_economics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/engine/intervals.h"

namespace tandem::test {
namespace {

constexpr int kSteps = 1 << 20, kLongest = 8;

CostModel costs(double draft) {
  CostModel model;
  model.target = PassCosts(std::vector<RowSeconds>{{1, 1}, {5, 1.2}, {9, 2.0}});
  model.draft = PassCosts(std::vector<RowSeconds>{{1, draft}});
  return model;
}

// Chains of kLongest drafts, each accepted with probability `a` once those before it were.
AcceptanceCounts chains(double a) {
  AcceptanceCounts counts;
  std::int64_t reached = kSteps;
  for (int i = 0; i < kLongest; ++i) {
    const auto accepted = static_cast<std::int64_t>(std::llround(a * static_cast<double>(reached)));
    counts.positions[static_cast<std::size_t>(i)] = {kSteps, kSteps, reached, accepted, kSteps};
    counts.metrics.total.accepted += accepted;
    reached = accepted;
  }
  for (std::size_t length = 0; length < counts.steps_by_length_and_rows.size(); ++length) {
    counts.steps_by_length_and_rows[length][1 + std::min<std::size_t>(length, kLongest)] = kSteps;
  }
  counts.metrics.steps = kSteps;
  counts.metrics.generated = 1 + kSteps + counts.metrics.total.accepted;
  counts.answers = 1;
  return counts;
}

TEST(DraftEconomics, ExpectedTokensAreTheGeometricSum) {
  for (const double a : {0.0, 0.3, 0.9}) {
    double sum = 1, power = 1;
    for (int length = 0; length <= 6; ++length) {
      EXPECT_NEAR(expected_tokens(a, length), sum, 1e-12);
      sum += power *= a;
    }
  }
  EXPECT_EQ(expected_tokens(1, 4), 5);
}

TEST(DraftEconomics, BreakEvenIsWhereTheTokensPayForTheCost) {
  for (const double length : {1.0, 2.5, 8.0}) {
    for (const double cost : {1.0, 1.3, 1.9}) {
      EXPECT_NEAR(expected_tokens(break_even(cost, length), length), cost, 1e-9) << length << " " << cost;
    }
  }
  EXPECT_TRUE(std::isinf(break_even(2.1, 1)));
  EXPECT_NEAR(break_even(1.4, 1), 0.4, 1e-9);  // one draft: acceptance against what its step costs more
}

TEST(DraftEconomics, ForecastFollowsTheFormulae) {
  const double a = 0.75, draft = 0.1;
  const std::vector<LengthForecast> forecasts = forecast_lengths(chains(a), costs(draft));
  ASSERT_EQ(forecasts.size(), kLongest + 1u);
  std::size_t best = 0;
  for (std::size_t length = 0; length < forecasts.size(); ++length) {
    const LengthForecast& f = forecasts[length];
    const double n = static_cast<double>(length);
    const double pass = length <= 4 ? 1 + 0.05 * n : 1.2 + 0.2 * (n - 4);
    EXPECT_EQ(f.length, static_cast<int>(length));
    EXPECT_NEAR(f.tokens, expected_tokens(a, n), 1e-5);
    EXPECT_NEAR(f.seconds, n * draft + pass, 1e-9);
    EXPECT_NEAR(f.speed, f.tokens / f.seconds, 1e-9);
    if (length > 0) {
      EXPECT_NEAR(expected_tokens(f.break_even, n), f.seconds, 1e-9);
      EXPECT_EQ(f.break_even<a, f.speed> 1);
    }
    if (f.speed > forecasts[best].speed) best = length;
  }
  EXPECT_EQ(best_of(forecasts).length, static_cast<int>(best));
  EXPECT_EQ(best, 4u);  // the next row costs four times as much
}

TEST(DraftEconomics, DraftsThatCostTooMuchLeavePlainDecoding) {
  const std::vector<LengthForecast> forecasts = forecast_lengths(chains(0.3), costs(0.5));
  EXPECT_EQ(best_of(forecasts).length, 0);
  EXPECT_EQ(best_of(forecasts).speed, 1);
}

TEST(DraftEconomics, DrawsCostBothSidesAndChangeNoBreakEven) {
  AcceptanceCounts counts = chains(0.75);
  const std::vector<LengthForecast> without = forecast_lengths(counts, costs(0.1));
  counts.metrics.seconds.sample = 0.2 * static_cast<double>(counts.metrics.generated);
  const std::vector<LengthForecast> with = forecast_lengths(counts, costs(0.1));
  for (std::size_t length = 1; length < with.size(); ++length) {
    EXPECT_NEAR(with[length].seconds, without[length].seconds + 0.2 * with[length].tokens, 1e-9);
    EXPECT_EQ(with[length].break_even, without[length].break_even);
    EXPECT_EQ(with[length].speed > 1, without[length].speed > 1);
  }
}

TEST(DraftEconomics, WhatTheDraftReadsIsPaidByEachToken) {
  AcceptanceCounts counts = chains(0.75);
  CostModel model = costs(0.1);
  model.draft = PassCosts(std::vector<RowSeconds>{{1, 0.1}, {101, 10.1}});
  const std::vector<LengthForecast> without = forecast_lengths(counts, model);
  const auto tokens = static_cast<double>(counts.metrics.total.accepted + counts.metrics.steps);
  counts.catch_up = {{21, kSteps / 4}, {101, kSteps / 64}};
  const double reading = (kSteps / 4 * 2.0 + kSteps / 64 * 10.0) / tokens;
  const std::vector<LengthForecast> with = forecast_lengths(counts, model);
  EXPECT_EQ(with[0].speed, 1);
  for (std::size_t length = 1; length < with.size(); ++length) {
    EXPECT_NEAR(with[length].seconds, without[length].seconds + reading * with[length].tokens, 1e-9);
    EXPECT_NEAR(expected_tokens(with[length].break_even, static_cast<double>(length)) * (1 - reading),
                without[length].seconds, 1e-9);
  }
  counts.catch_up = {{101, kSteps}};  // dearer than the tokens themselves
  EXPECT_TRUE(std::isinf(forecast_lengths(counts, model)[1].break_even));
  EXPECT_EQ(best_of(forecast_lengths(counts, model)).length, 0);
}

TEST(DraftEconomics, NothingDraftedForecastsPlainDecodingOnly) {
  const std::vector<LengthForecast> forecasts = forecast_lengths({}, costs(0.1));
  ASSERT_EQ(forecasts.size(), 1u);
  EXPECT_EQ(best_of(forecasts).length, 0);
  EXPECT_EQ(measured_steps({}, costs(0.1)).speed, 1);
}

TEST(DraftEconomics, MeasuredSpeedComparesTheStepsWithOneRow) {
  AcceptanceCounts counts;
  counts.answers = 2;
  counts.metrics.steps = 10;
  counts.metrics.total.accepted = 20;
  counts.metrics.generated = 32;
  counts.metrics.seconds = {.prefill = 100, .draft = 3, .verify = 12, .sample = 3.2, .rollback = 0};
  // Thirty tokens at 1.1 each, in 15 seconds of passes and 3 of draws.
  EXPECT_NEAR(measured_steps(counts, costs(0.1)).seconds, 18.0 / 10, 1e-12);
  EXPECT_NEAR(measured_steps(counts, costs(0.1)).speed, 30 * 1.1 / 18, 1e-12);
}

TEST(Intervals, WilsonsAreTheTabulatedOnes) {
  EXPECT_FALSE(wilson_interval(0, 0));
  for (const auto& [successes, trials, low, high] :
       {std::tuple{8, 10, 0.4902, 0.9433}, {0, 10, 0.0, 0.2775}, {10, 10, 0.7225, 1.0}, {50, 100, 0.4038, 0.5962}}) {
    const Interval found = *wilson_interval(successes, trials);
    EXPECT_NEAR(found.low, low, 5e-5) << successes;
    EXPECT_NEAR(found.high, high, 5e-5) << successes;
  }
}

TEST(Intervals, BootstrapHoldsTheRatioAndIsTheSameEachTime) {
  std::vector<Share> groups;
  for (int i = 0; i < 20; ++i) groups.push_back({static_cast<double>(30 + i % 5 * 10), 100});
  const Interval found = *bootstrap_interval(groups);
  EXPECT_LT(found.low, 0.5);
  EXPECT_GT(found.high, 0.5);
  // The mean of 20 shares whose deviation is 0.141 has one of 0.0316: 1.96 of those to each side.
  EXPECT_NEAR(found.high - found.low, 2 * 1.96 * 0.0316, 0.02);
  EXPECT_EQ(bootstrap_interval(groups)->low, found.low);
  EXPECT_EQ(bootstrap_interval(groups)->high, found.high);
}

TEST(Intervals, BootstrapNeedsTwoGroupsThatCount) {
  EXPECT_FALSE(bootstrap_interval({}));
  EXPECT_FALSE(bootstrap_interval(std::vector<Share>{{1, 2}, {0, 0}}));
  const Interval equal = *bootstrap_interval(std::vector<Share>{{1, 2}, {2, 4}});
  EXPECT_EQ(equal.low, 0.5);
  EXPECT_EQ(equal.high, 0.5);
}

}  // namespace
}  // namespace tandem::test
