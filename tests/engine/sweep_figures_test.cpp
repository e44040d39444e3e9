// Speed-ups, intervals, noise and winners, from pairs whose seconds a fake clock gave.
#include "src/engine/sweep_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tandem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SweepCell cell(const std::string& kind, int length, double temperature = 0) {
  SweepCell cell;
  cell.config.draft.kind = kind;
  cell.config.draft.length = length;
  cell.config.sampling.temperature = temperature;
  return cell;
}

SweepRun run(double seconds_a_token) {
  SweepRun run;
  run.answers = 1;
  run.tokens = 11;
  run.decoded = 10;
  run.decode_seconds = 10 * seconds_a_token;
  run.wall_seconds = run.decode_seconds + 1;
  run.steps = 4;
  run.total = {8, 7, 6};
  return run;
}

class SweepFiguresTest : public ::testing::Test {
 protected:
  SweepPair pair(std::size_t cell, std::size_t prompt, int repeat, double plain, double drafted, int start = 0) const {
    SweepPair pair;
    pair.cell = cells_[cell].key();
    pair.prompt = prompts_[prompt].key();
    pair.repeat = repeat;
    pair.start = start;
    pair.plain = run(plain);
    pair.drafted = run(drafted);
    return pair;
  }
  std::vector<CellFigures> figures() const { return cell_figures(cells_, prompts_, pairs_, 1); }

  std::vector<SweepCell> cells_{cell("model", 2), cell("model", 4), cell("none", 0)};
  std::vector<SweepPrompt> prompts_{{"one", "code", {1, 2}, 8}, {"two", "chat", {3, 4}, 8}};
  std::vector<SweepPair> pairs_;
};

TEST(SweepRun, FiguresAreThoseOfTheAnswer) {
  GenerationResult result;
  result.ids = {1, 2, 3, 4, 5};
  result.stop_reason = StopReason::length;
  result.ttft_seconds = 0.5;
  result.tpot_seconds = 0.25;
  result.wall_seconds = 1.5;
  result.metrics.steps = 2;
  result.metrics.total = {6, 4, 2};
  result.metrics.by_depth[0] = {2, 2, 1};
  result.metrics.by_depth[1] = {2, 1, 1};
  result.metrics.seconds.draft = 0.3;
  SweepRun sum(result);
  EXPECT_EQ(sum.decoded, 4);
  EXPECT_DOUBLE_EQ(sum.decode_seconds, 1);
  EXPECT_DOUBLE_EQ(*sum.seconds_a_token(), 0.25);
  EXPECT_EQ(sum.stop_reason, "length");
  EXPECT_THAT(sum.by_position, SizeIs(2));
  result.ids = {1};  // one token takes no time after the first
  result.tpot_seconds.reset();
  const SweepRun one(result);
  EXPECT_FALSE(one.seconds_a_token().has_value());
  sum.add(one);
  EXPECT_EQ(sum.answers, 2);
  EXPECT_EQ(sum.tokens, 6);
  EXPECT_EQ(sum.total.accepted, 4);
  EXPECT_DOUBLE_EQ(*sum.seconds_a_token(), 0.25);
  EXPECT_DOUBLE_EQ(sum.seconds.draft, 0.6);
  EXPECT_DOUBLE_EQ(sum.wall_seconds, 3);
}

TEST_F(SweepFiguresTest, SpeedUpIsPlainSecondsATokenOverDraftedOnes) {
  pairs_ = {pair(0, 0, 0, 0.04, 0.02), pair(0, 1, 0, 0.04, 0.08), pair(0, 1, 1, 0.04, 0.02)};
  const std::vector<CellFigures> all = figures();
  const CellFigures& f = all[0];
  EXPECT_DOUBLE_EQ(*pairs_[0].speedup(), 2);
  ASSERT_TRUE(f.speedup.has_value());
  EXPECT_NEAR(f.speedup->value, std::sqrt(2 * 1.0), 1e-12);  // 2 and the mean of 1/2 and 2
  ASSERT_THAT(f.prompts, SizeIs(2));
  EXPECT_NEAR(f.prompts[1].speedup, 1, 1e-12);
  EXPECT_EQ(f.worst()->prompt, 1u);
  EXPECT_EQ(f.pairs, 3);
  EXPECT_EQ(f.plain.answers, 3);
  EXPECT_NEAR(f.drafted.decode_seconds, 10 * (0.02 + 0.08 + 0.02), 1e-12);
  EXPECT_FALSE(all[1].speedup.has_value());
  EXPECT_EQ(all[1].worst(), nullptr);
}

TEST_F(SweepFiguresTest, OneAnswerOfOneTokenHasNoSpeedUp) {
  pairs_ = {pair(0, 0, 0, 0.04, 0.02)};
  pairs_[0].drafted.decoded = 0;
  pairs_[0].drafted.decode_seconds = 0;
  EXPECT_EQ(figures()[0].short_answers, 1);
  EXPECT_FALSE(figures()[0].speedup.has_value());
}

TEST_F(SweepFiguresTest, OnlyTheLastTryOfAPairCountsAndForeignPairsDoNot) {
  pairs_ = {pair(0, 0, 0, 1, 1), pair(0, 0, 0, 1, 0.5)};
  pairs_[0].error = "no usable number";
  SweepPair foreign = pair(0, 0, 1, 1, 0.01);
  foreign.prompt = "one of another file";
  pairs_.push_back(foreign);
  foreign = pair(0, 0, 1, 1, 0.01);
  foreign.cell = "another cell";
  pairs_.push_back(foreign);
  EXPECT_THAT(figures()[0].failed, IsEmpty());
  EXPECT_EQ(figures()[0].pairs, 1);
  EXPECT_DOUBLE_EQ(figures()[0].speedup->value, 2);
  pairs_.pop_back();
  std::swap(pairs_[0], pairs_[1]);
  EXPECT_THAT(figures()[0].failed, SizeIs(1));
  EXPECT_FALSE(figures()[0].speedup.has_value());
}

TEST(SweepInterval, ASinglePairHasNoneAndEqualOnesHaveNoWidth) {
  EXPECT_FALSE(speed_up({{2}}, 1).low.has_value());
  const SpeedUp equal = speed_up({{2, 2}, {2}}, 1);
  EXPECT_DOUBLE_EQ(*equal.low, 2);
  EXPECT_DOUBLE_EQ(*equal.high, 2);
}

TEST(SweepInterval, IsAFunctionOfTheSeed) {
  const std::vector<std::vector<double>> ratios{{1, 1.5}, {2, 1.8}, {1.2, 1.4}};
  EXPECT_EQ(speed_up(ratios, 3).low, speed_up(ratios, 3).low);
  EXPECT_NE(speed_up(ratios, 3).low, speed_up(ratios, 4).low);
  EXPECT_LT(*speed_up(ratios, 3).low, speed_up(ratios, 3).value);
}

// 20 prompts that differ by a tenth, 3 repeats that differ by a twentieth: the percentile bootstrap holds the truth in
// about 93 of 100 sweeps. 400 sweeps: 0.93 -+ 4 standard errors of 0.013.
TEST(SweepInterval, HoldsTheTruthAboutAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const double truth = std::log(1.5);
  int held = 0;
  constexpr int kSweeps = 400;
  for (int i = 0; i < kSweeps; ++i) {
    std::vector<std::vector<double>> ratios(20);
    for (std::vector<double>& prompt : ratios) {
      const double middle = truth + 0.1 * normal(random);
      for (int k = 0; k < 3; ++k) prompt.push_back(std::exp(middle + 0.05 * normal(random)));
    }
    const SpeedUp s = speed_up(ratios, static_cast<std::uint64_t>(i));
    held += *s.low <= 1.5 && 1.5 <= *s.high;
  }
  EXPECT_GE(held, 0.88 * kSweeps);
  EXPECT_LE(held, 0.98 * kSweeps);
}

TEST_F(SweepFiguresTest, APlainAnswerFarFromItsNeighboursIsNoisy) {
  for (int i = 0; i < 10; ++i) pairs_.push_back(pair(0, 0, i, i == 4 ? 0.051 : 0.04, i == 4 ? 0.025 : 0.02));
  std::vector<bool> expected(10, false);
  expected[4] = true;
  EXPECT_EQ(noisy_pairs(pairs_), expected);
  pairs_[4] = pair(0, 0, 4, 0.049, 0.025);  // less than a quarter off
  EXPECT_EQ(noisy_pairs(pairs_), std::vector<bool>(10, false));
}

TEST_F(SweepFiguresTest, AStateOfTheMachineThatLastsIsNoNoise) {
  for (int i = 0; i < 20; ++i) pairs_.push_back(pair(0, 0, i, 0.02 + 0.002 * i, 0.01 + 0.001 * i));
  EXPECT_EQ(std::ranges::count(noisy_pairs(pairs_), true), 0);
  pairs_.clear();
  // Another start of the command is another day.
  for (int i = 0; i < 20; ++i) pairs_.push_back(pair(0, 0, i, i < 10 ? 0.02 : 0.04, i < 10 ? 0.01 : 0.02, i / 10));
  EXPECT_EQ(std::ranges::count(noisy_pairs(pairs_), true), 0);
}

TEST_F(SweepFiguresTest, WhatHasFewNeighboursIsNotJudged) {
  pairs_ = {pair(0, 0, 0, 0.04, 0.02), pair(0, 1, 0, 0.08, 0.02), pair(1, 0, 0, 0.02, 0.02)};
  EXPECT_EQ(std::ranges::count(noisy_pairs(pairs_), true), 0);
}

TEST_F(SweepFiguresTest, ASpeedUpFarFromItsRepeatsIsNoisy) {
  pairs_ = {pair(0, 0, 0, 0.04, 0.02), pair(0, 0, 1, 0.04, 0.02), pair(0, 0, 2, 0.04, 0.03), pair(1, 0, 0, 0.04, 0.03)};
  EXPECT_THAT(noisy_pairs(pairs_), ElementsAre(false, false, true, false));
  pairs_[2].drafted.steps = 6;  // other drafts were accepted, that takes another time
  EXPECT_THAT(noisy_pairs(pairs_), ElementsAre(false, false, false, false));
}

TEST_F(SweepFiguresTest, NoisyPairsCountOnlyWhereAPromptHasNoOthers) {
  for (int i = 0; i < 9; ++i) pairs_.push_back(pair(0, 0, i, i == 4 ? 0.08 : 0.04, 0.02));
  pairs_.push_back(pair(1, 1, 0, 0.16, 0.02));
  const std::vector<CellFigures> all = figures();
  EXPECT_EQ(all[0].noisy, 1);
  EXPECT_NEAR(all[0].speedup->value, 2, 1e-12);
  EXPECT_NEAR(*all[0].speedup_of_all, std::exp((8 * std::log(2.0) + std::log(4.0)) / 9), 1e-12);
  EXPECT_EQ(all[0].plain.answers, 8);
  EXPECT_EQ(all[0].prompts[0].noisy, 1);
  EXPECT_EQ(all[1].noisy, 1);
  EXPECT_NEAR(all[1].speedup->value, 8, 1e-12);
}

class SweepWinners : public SweepFiguresTest {
 protected:
  SweepWinners() { cells_ = {cell("model", 2), cell("model", 4), cell("none", 0), cell("model", 2, 1)}; }
};

TEST_F(SweepWinners, TheFastestDraftsOfEachTemperatureWin) {
  pairs_ = {pair(0, 0, 0, 2, 1), pair(1, 0, 0, 3, 1), pair(2, 0, 0, 5, 1), pair(3, 0, 0, 1, 2)};
  const std::vector<CellFigures> all = figures();
  const std::vector<Winner> found = winners(cells_, all);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].figures, &all[1]);  // plain decoding against itself is no rival
  EXPECT_EQ(found[1].temperature, 1);
  EXPECT_EQ(found[1].figures, nullptr);  // half as fast is no win
}

TEST_F(SweepWinners, CellsWhoseIntervalReachesTheWinnerMayBeAsFast) {
  for (std::size_t prompt : {0, 1}) {
    pairs_.push_back(pair(0, prompt, 0, 2.1, 1));
    pairs_.push_back(pair(1, prompt, 0, prompt == 0 ? 1.2 : 3, 1));
  }
  const std::vector<CellFigures> all = figures();
  const std::vector<Winner> found = winners(cells_, all);
  EXPECT_EQ(found[0].figures, &all[0]);
  EXPECT_THAT(found[0].as_good, ElementsAre(&all[1]));
}

TEST_F(SweepWinners, OtherTextThanPlainDecodingsCannotWin) {
  pairs_ = {pair(0, 0, 0, 2, 1), pair(1, 0, 0, 3, 1)};
  pairs_[1].differs_at = 3;
  const std::vector<CellFigures> all = figures();
  EXPECT_THAT(all[1].differing, SizeIs(1));
  EXPECT_EQ(winners(cells_, all)[0].figures, &all[0]);
}

}  // namespace
}  // namespace tandem::test
