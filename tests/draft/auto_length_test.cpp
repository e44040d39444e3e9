// The length policy on simulated texts whose best policy is known exactly.
#include "draft/auto_length.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/draft/simulated_text.h"

namespace tandem::test {
namespace {

constexpr int kNodes = 16;

struct Setting {
  std::string name;
  Costs costs;
  std::vector<TokenType> types;
  DraftSource source = DraftSource::model;
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

Costs with_step(Costs costs, double draft_step) {
  costs.draft_step = draft_step;
  costs.draft_row = 0;
  return costs;
}

std::vector<TokenType> alike(double acceptance) { return {{acceptance, acceptance, 1}}; }
// Sure and unsure tokens, as a model drafts them.
std::vector<TokenType> mixed(double sure, double unsure, double share) {
  return {{0.97, sure, share}, {0.45, unsure, 1 - share}};
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  const auto free = [](const Costs& costs) { return with_step(costs, 0); };
  for (const double a : {0.0, 0.3, 0.6, 0.8, 0.9}) {
    const std::string tenths = std::to_string(static_cast<int>(10 * a));
    all.push_back({"measured_" + tenths, with_step(measured_costs(), 0.39), alike(a)});
    all.push_back({"cheap_step_" + tenths, with_step(measured_costs(), 0.25), alike(a)});
    all.push_back({"steep_" + tenths, with_step(steep_costs(), 19.2), alike(a)});
    all.push_back({"ngram_" + tenths, free(measured_costs()), alike(a), DraftSource::ngram});
    all.push_back({"ngram_steep_" + tenths, free(steep_costs()), alike(a), DraftSource::ngram});
    all.push_back({"ngram_tiled_" + tenths, free(tiled_costs(0)), alike(a), DraftSource::ngram});
  }
  all.push_back({"tiled_model", tiled_costs(0.3), alike(0.8)});
  all.push_back({"mixed", with_step(measured_costs(), 0.39), mixed(0.96, 0.4, 0.7)});
  all.push_back({"mixed_overconfident", with_step(measured_costs(), 0.39), mixed(0.8, 0.2, 0.5)});
  all.push_back({"mixed_cheap", with_step(measured_costs(), 0.2), mixed(0.98, 0.5, 0.6)});
  all.push_back({"mixed_steep", with_step(steep_costs(), 5), mixed(0.97, 0.3, 0.7)});
  all.push_back({"mixed_ngram", free(steep_costs()), mixed(0.9, 0.2, 0.5), DraftSource::ngram});
  return all;
}

class Simulated : public ::testing::TestWithParam<Setting> {};

TEST_P(Simulated, RateIsNearTheBestPolicys) {
  const Setting& setting = GetParam();
  const double best = BestPolicy(setting.costs, setting.types, kNodes).tokens_a_second();
  AutoLength policy(setting.costs.model(), kNodes, 0, false);
  SimulatedText text(setting.costs, setting.types, setting.source);
  const StepOutcome outcome = text.run(policy, 60000);
  const double rate = outcome.tokens / outcome.seconds;
  // Tokens of two kinds leave fewer tests to learn each from.
  EXPECT_GT(rate, (setting.types.size() == 1 ? 0.99 : 0.98) * best);
}

INSTANTIATE_TEST_SUITE_P(AutoLength, Simulated, ::testing::ValuesIn(settings()),
                         [](const auto& info) { return info.param.name; });

TEST(AutoLength, UselessDraftCostsLessThanTwoPercentOfAnAnswer) {
  for (const auto source : {DraftSource::model, DraftSource::ngram}) {
    for (const double confidence : {0.3, 0.8, 0.99}) {
      for (const int unseen : {1, 100}) {
        const Costs costs = measured_costs();
        AutoLength policy(costs.model(), kNodes, 0, true);
        SimulatedText text(costs, {{confidence, 0, 1}}, source);
        text.set_unseen(unseen);
        const StepOutcome outcome = text.run(policy, 512);
        const double plain = outcome.tokens * costs.target.front().seconds;
        EXPECT_LT(outcome.seconds, 1.02 * plain) << confidence;
      }
    }
  }
}

// A draft that is always wrong is so in every bin of its confidence, and need not show it in each.
TEST(AutoLength, UselessDraftOfManyConfidencesIsFoundOutWithinAShortAnswer) {
  std::vector<TokenType> types;
  for (const double confidence : {0.2, 0.4, 0.6, 0.75, 0.8, 0.83, 0.86, 0.89, 0.93, 0.97, 0.999}) {
    types.push_back({confidence, 0, 1.0 / 11});
  }
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Costs costs = measured_costs();
    AutoLength policy(costs.model(), kNodes, 0, true);
    SimulatedText text(costs, types, DraftSource::model, seed);
    const StepOutcome outcome = text.run(policy, 192);
    EXPECT_LT(outcome.seconds, 1.03 * outcome.tokens * costs.target.front().seconds) << "seed " << seed;
  }
}

// What a draft foretells of a prompt's beginning decides whether it reads the rest.
TEST(AutoLength, TrialOfADraftTellsWhatItsConfidencesAreWorth) {
  const auto reads_on = [](bool useful, double confidence) {
    AutoLength policy(measured_costs().model(), kNodes, 0, true);
    policy.begin_step({200, kMaxTreeNodes, 150});
    DraftQuestion step{1, 1, 1, -1, DraftSource::model, 0, 150};
    EXPECT_TRUE(policy.allow_trial(step, 24));
    for (int i = 0; i < 15; ++i) policy.observe_trial(DraftSource::model, confidence, useful && i < 15 * confidence);
    step.feed = 126;
    return policy.allow_draft_step(step);
  };
  EXPECT_TRUE(reads_on(true, 0.9));
  EXPECT_TRUE(reads_on(true, 0.3));
  EXPECT_FALSE(reads_on(false, 0.9));
  EXPECT_FALSE(reads_on(false, 0.5));
  EXPECT_TRUE(reads_on(false, 0.05)) << "it never said that it knew";
}

TEST(AutoLength, PerfectDraftReachesTheMaximum) {
  for (const Costs& costs : {measured_costs(), steep_costs(), tiled_costs(0.2)}) {
    const double best = BestPolicy(costs, alike(1), kNodes).tokens_a_second();
    AutoLength policy(costs.model(), kNodes, 0, true);
    SimulatedText text(costs, alike(1));
    text.run(policy, 256);
    const StepOutcome outcome = text.run(policy, 2000);
    EXPECT_GT(outcome.tokens / outcome.seconds, 0.99 * best);
  }
}

TEST(AutoLength, AcceptanceThatComesBackIsFoundWithin64Tokens) {
  for (const int bad : {32, 100, 300, 1000}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const Costs costs = with_step(measured_costs(), 0.39);
      AutoLength policy(costs.model(), kNodes, 0, false);
      SimulatedText text(costs, mixed(0.95, 0.5, 0.8), DraftSource::model, seed);
      text.run(policy, 200);
      text.set_types(mixed(0, 0, 0.8));
      text.run(policy, bad);
      text.set_types({{0.97, 1, 1}});
      int tokens = 0;
      for (bool found = false; !found && tokens < 1000;) {
        const StepOutcome step = text.step(policy);
        tokens += step.tokens;
        found = step.proposed > 1;  // more than a probe
      }
      EXPECT_LE(tokens, 64) << bad << " bad tokens, seed " << seed;
    }
  }
}

// A long prompt that the draft has not read is dear to read, yet plain decoding does not last for ever.
TEST(AutoLength, DraftBehindALongUnreadTextIsTriedAgain) {
  for (const bool refresh : {false, true}) {
    for (const int bad : {100, 1000}) {
      const Costs costs = measured_costs();
      AutoLength policy(costs.model(), kNodes, 0, refresh);
      SimulatedText text(costs, mixed(0, 0, 0.8));
      text.set_unseen(3000);
      text.run(policy, bad);
      text.set_types({{0.97, 1, 1}});
      int tokens = 0;
      for (bool found = false; !found && tokens < 4000;) {
        const StepOutcome step = text.step(policy);
        tokens += step.tokens;
        found = step.proposed > 1;  // more than a probe
      }
      // A probe reads 32 tokens, for about 1.4 passes of a single row: 1 % of 140 of them.
      EXPECT_LE(tokens, 300) << bad << " bad tokens, refresh " << refresh;
    }
  }
}

TEST(AutoLength, SameAnswersToSameQuestions) {
  std::vector<double> seconds;
  for (int i = 0; i < 2; ++i) {
    AutoLength policy(measured_costs().model(), kNodes, 0, false);
    SimulatedText text(measured_costs(), mixed(0.9, 0.4, 0.5));
    for (int step = 0; step < 500; ++step) {
      const StepOutcome outcome = text.step(policy);
      // Without `refresh` what the clock says changes nothing.
      policy.observe_seconds(i * 0.1, i * 2.0, 1 + outcome.proposed);
      if (i == 0) {
        seconds.push_back(outcome.seconds);
      } else {
        ASSERT_EQ(outcome.seconds, seconds[static_cast<std::size_t>(step)]);
      }
    }
  }
}

TEST(AutoLength, ResetForgetsTheText) {
  AutoLength used(measured_costs().model(), kNodes, 0, false), fresh(measured_costs().model(), kNodes, 0, false);
  SimulatedText(measured_costs(), alike(0.1)).run(used, 300);
  used.reset();
  SimulatedText a(measured_costs(), alike(0.9), DraftSource::model, 3),
      b(measured_costs(), alike(0.9), DraftSource::model, 3);
  for (int step = 0; step < 100; ++step) ASSERT_EQ(a.step(used).seconds, b.step(fresh).seconds);
}

TEST(AutoLength, RefreshedCostsChangeWhatPays) {
  AutoLength policy(with_step(steep_costs(), 0).model(), kNodes, 0, true);
  SimulatedText text(with_step(steep_costs(), 0), alike(0.5), DraftSource::ngram);
  EXPECT_LT(text.run(policy, 500).proposed, 50);  // a row more costs more than half a token
  for (int i = 0; i < 500; ++i) {
    for (int rows = 1; rows <= 4; ++rows) policy.observe_seconds(0, 27.75, rows);
  }
  EXPECT_GT(text.run(policy, 500).proposed, 250);
}

TEST(AutoLength, BudgetAndLeastProbabilityBind) {
  AutoLength policy(measured_costs().model(), 5, 0.5, false);
  policy.begin_step({2, kMaxTreeNodes});
  EXPECT_TRUE(policy.allow_row({1, 1, 1, 0.9, DraftSource::ngram}));
  EXPECT_FALSE(policy.allow_row({2, 2, 1, 0.4, DraftSource::ngram}));
  EXPECT_TRUE(policy.allow_row({2, 2, 1, 0.9, DraftSource::ngram}));
  EXPECT_FALSE(policy.allow_row({3, 3, 1, 0.9, DraftSource::ngram}));
  policy.begin_step({9, 1});
  EXPECT_FALSE(policy.allow_row({1, 1, 1, 0.9, DraftSource::ngram}));
  EXPECT_FALSE(policy.allow_draft_step({1, 1, 1, -1, DraftSource::model}));
}

TEST(AutoLength, SiblingsComeWhereTheFirstChildIsUnsure) {
  AutoLength policy(measured_costs().model(), kNodes, 0, false);
  policy.begin_step({8, kMaxTreeNodes});
  EXPECT_TRUE(policy.allow_row({1, 1, 1, 0.4, DraftSource::model, 0}));
  EXPECT_TRUE(policy.allow_row({1, 2, 1, 0.5, DraftSource::model, 0}));
  policy.begin_step({8, kMaxTreeNodes});
  EXPECT_TRUE(policy.allow_row({1, 1, 1, 0.98, DraftSource::model, 0}));
  EXPECT_FALSE(policy.allow_row({1, 2, 1, 0.5, DraftSource::model, 0}));
}

// A sibling on its way to a branch of its own: what follows it counts, at the price of its draft steps.
TEST(AutoLength, StepsBelowASiblingAreAskedForLikeOthers) {
  AutoLength policy(with_step(measured_costs(), 0.05).model(), kNodes, 0, false);
  policy.begin_step({8, kMaxTreeNodes});
  EXPECT_TRUE(policy.allow_draft_step({1, 1, 1, -1, DraftSource::model, 0}));
  EXPECT_TRUE(policy.allow_row({1, 1, 1, 0.4, DraftSource::model, 0}));
  EXPECT_TRUE(policy.allow_row({1, 2, 1, 0.8, DraftSource::model, 0, 1, 1}));
  EXPECT_TRUE(policy.allow_draft_step({2, 3, 0.48, -1, DraftSource::model, 2}));
  EXPECT_FALSE(policy.allow_draft_step({9, 3, 0.48, -1, DraftSource::model, 2}));
}

// A fixed seed must give one text, so what is unread counts as in a fresh process.
TEST(AutoLength, WithoutRefreshThePromptCountsAsUnreadUntilTheFirstDraftStep) {
  const auto first_step = [](int context, int feed) {
    AutoLength policy(measured_costs().model(), kNodes, 0, false);
    policy.begin_step({40, kMaxTreeNodes, context});
    return policy.allow_draft_step({1, 1, 1, -1, DraftSource::model, 0, feed});
  };
  EXPECT_TRUE(first_step(20, 20));
  EXPECT_FALSE(first_step(2000, 2000));
  EXPECT_FALSE(first_step(2000, 1));  // an earlier prompt has read it
  AutoLength policy(measured_costs().model(), kNodes, 0, false);
  policy.begin_step({40, kMaxTreeNodes, 20});
  EXPECT_TRUE(policy.allow_draft_step({1, 1, 1, -1, DraftSource::model, 0, 20}));
  policy.begin_step({40, kMaxTreeNodes, 2000});
  EXPECT_TRUE(policy.allow_draft_step({1, 1, 1, -1, DraftSource::model, 0, 1}));
}

TEST(FixedLength, AddsSiblingsOnlyToATree) {
  FixedLength chain(3, 8, 0), tree(3, 8, 0, DraftShape::tree);
  for (FixedLength* policy : {&chain, &tree}) policy->begin_step({9, kMaxTreeNodes});
  const DraftQuestion sibling{1, 2, 1, 0.4, DraftSource::model, 0, 1, 1};
  EXPECT_FALSE(chain.allow_row(sibling));
  EXPECT_TRUE(tree.allow_row(sibling));
}

TEST(PassCosts, AreInterpolatedMonotoneAndGoOn) {
  const PassCosts costs(std::vector<RowSeconds>{{1, 1}, {2, 0.9}, {4, 2}, {128, 64}});
  EXPECT_DOUBLE_EQ(costs.seconds(1), 1);
  EXPECT_DOUBLE_EQ(costs.seconds(2), 1);
  EXPECT_DOUBLE_EQ(costs.seconds(3), 1.5);
  EXPECT_DOUBLE_EQ(costs.seconds(66), 33);
  EXPECT_NEAR(costs.seconds(252), 126, 1e-9);
  for (int rows = 1; rows < 200; ++rows) EXPECT_LE(costs.seconds(rows), costs.seconds(rows + 1));
  EXPECT_EQ(PassCosts().seconds(7), 0);
  EXPECT_THROW(PassCosts(std::vector<RowSeconds>{}), Error);
  EXPECT_THROW(PassCosts(std::vector<RowSeconds>{{2, 1}, {2, 1}}), Error);
  EXPECT_THROW(PassCosts(std::vector<RowSeconds>{{1, 0}}), Error);
}

TEST(PassCosts, FollowTheClockAndStayMonotone) {
  PassCosts costs(std::vector<RowSeconds>{{1, 1}, {8, 2}});
  for (int i = 0; i < 300; ++i) {
    costs.observe(1, 2);
    costs.observe(4, 2.2);
  }
  EXPECT_NEAR(costs.seconds(1), 2, 0.05);
  EXPECT_NEAR(costs.seconds(4), 2.2, 0.05);
  for (int rows = 1; rows < 64; ++rows) EXPECT_LE(costs.seconds(rows), costs.seconds(rows + 1));
}

}  // namespace
}  // namespace tandem::test
