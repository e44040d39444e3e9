// Losslessness without statistics: the exact law of a step, compared with the target's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/verify/exact_cases.h"
#include "tests/verify/faulty_state.h"

namespace tandem {
namespace {

using namespace testing;

TEST(Rejection, OutputDistributionIsTheTargetsOnChains) {
  EXPECT_GT(expect_lossless<Rejection<>>(chains(), {}, 4), 10000);
}

TEST(Rejection, OutputDistributionIsTheTargetsOnTrees) {
  EXPECT_GT(expect_lossless<Rejection<>>(trees()), 10000);
  expect_lossless_on_the_widest_tree<Rejection<>>();
}

TEST(Rejection, OutputDistributionIsTheTargetsWithDeterministicChildren) {
  expect_lossless<Rejection<>>(deterministic_trees(), {}, 4);
  expect_lossless<Rejection<>>(deterministic_trees(), {.skewed = true}, 4);
}

TEST(Rejection, OutputDistributionIsTheTargetsOnNodesThatMixBothKinds) {
  expect_lossless<Rejection<>>(mixed_nodes());
  expect_lossless<Rejection<>>(mixed_nodes(), {.skewed = true});
}

TEST(Rejection, OutputDistributionIsTheTargetsOnTreesGrownBestFirst) {
  expect_lossless_when_grown_best_first<Rejection<>>();
}

// A sibling that repeats an earlier one is passed over, which makes independent draws lossless too.
TEST(Rejection, RepeatedSiblingsAreHarmless) {
  expect_lossless<Rejection<>>(repeating_trees(), {.with_replacement = true});
}

double total_variation(Fault fault, int vocab, const Shape& shape, const std::string& pair_name = "related") {
  for (const Pair& pair : all_pairs(vocab, 20)) {
    if (pair.name != pair_name) continue;
    return Enumeration<Rejection<FaultyState>>(vocab, pair, shape, {}, {FaultyState(fault)}).total_variation();
  }
  ADD_FAILURE() << "no pair " << pair_name;
  return 0;
}

TEST(RejectionMutants, TheHarnessPassesTheRuleWithoutAFault) {
  EXPECT_LT(total_variation(Fault::none, 3, sampled({1, 1, 1})), kExact);
  EXPECT_LT(total_variation(Fault::none, 4, sampled({2, 2})), kExact);
  EXPECT_LT(total_variation(Fault::none, 4, {Level{1, 2}, Level{1, 1}}), kExact);
}

TEST(RejectionMutants, EveryFaultIsSeen) {
  struct Mutant {
    Fault fault;
    Shape shape;
  };
  const std::vector<Mutant> mutants{{Fault::residual_is_target, sampled({1, 1, 1})},
                                    {Fault::residual_is_target, sampled({2, 1})},
                                    {Fault::residual_zeroes_child, sampled({1, 1, 1})},
                                    {Fault::residual_zeroes_child, sampled({2, 1})},
                                    {Fault::bonus_from_proposal, sampled({1, 1, 1})},
                                    {Fault::bonus_from_proposal, sampled({2, 1})},
                                    {Fault::bonus_from_proposal, sampled({})},
                                    {Fault::no_renormalisation, sampled({2, 1})},
                                    {Fault::no_renormalisation, sampled({2, 2})},
                                    {Fault::deterministic_by_ratio, deterministic({1})},
                                    {Fault::deterministic_by_ratio, deterministic({2, 1})},
                                    {Fault::proposal_keeps_deterministic, {Level{1, 1}}},
                                    {Fault::proposal_keeps_deterministic, {Level{1, 1}, Level{1, 1}}},
                                    {Fault::deterministic_leaves_residual, deterministic({1, 1})},
                                    {Fault::accepts_always, sampled({1})}};
  for (const Mutant& mutant : mutants) {
    for (const char* pair : {"independent", "related"}) {
      EXPECT_GT(total_variation(mutant.fault, 4, mutant.shape, pair), kVisible)
          << pair << ", fault " << static_cast<int>(mutant.fault) << ", depth " << mutant.shape.size();
    }
  }
}

// p = q = (.6, .4), only token 0 is kept when drawn: the output becomes (.84, .16).
TEST(RejectionMutants, DroppingADrawnTokenIsSeen) {
  const Pair pair = fixed_pair({0.6, 0.4}, {0.6, 0.4});
  EXPECT_NEAR(Enumeration<>(2, pair, sampled({1}), {.drop_all_but_token_0 = true}).total_variation(), 0.24, 1e-9);
  EXPECT_LT(Enumeration<>(2, pair, sampled({1})).total_variation(), kExact);
}

TEST(RejectionMutants, CallingTopTokensSampledIsSeen) {
  for (const Pair& pair : all_pairs(3, 20)) {
    if (pair.name != "independent" && pair.name != "related") continue;
    EXPECT_GT(Enumeration<>(3, pair, deterministic({1, 1}), {.call_all_sampled = true}).total_variation(), kVisible);
  }
}

double overlap(const std::vector<double>& p, const std::vector<double>& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::min(p[i], q[i]);
  return sum;
}

// Lossless but wasteful rules pass every test above; this one they fail.
TEST(RejectionAcceptance, ChainCommitsTheGeometricSumOfTheOverlap) {
  const std::vector<double> p{0.5, 0.3, 0.2}, q{0.2, 0.3, 0.5};
  const double alpha = overlap(p, q);
  for (int length = 0; length <= 4; ++length) {
    const Shape shape(static_cast<std::size_t>(length), Level{0, 1});
    EXPECT_NEAR(Enumeration<>(3, fixed_pair(p, q), shape).expected_tokens(),
                (1 - std::pow(alpha, length + 1)) / (1 - alpha), kExact);
  }
}

// Two tokens, p = (1/3, 2/3), q = (2/3, 1/3), length 2: 10/9 accepted on average.
TEST(RejectionAcceptance, GivesTheToyValueOfTheBlockPaper) {
  const Pair pair = fixed_pair({1.0 / 3, 2.0 / 3}, {2.0 / 3, 1.0 / 3});
  EXPECT_NEAR(Enumeration<>(2, pair, sampled({1, 1})).expected_tokens(), 1 + 10.0 / 9, kExact);
}

TEST(RejectionAcceptance, DeterministicChildrenAreAcceptedWithTheirShareOfTheTarget) {
  const std::vector<double> p{0.4, 0.1, 0.3, 0.2}, q{0.1, 0.5, 0.3, 0.1};  // top of q: 1, 2, 0
  for (const auto& [width, share] : std::vector<std::pair<int, double>>{{1, 0.1}, {2, 0.4}, {3, 0.8}, {4, 1.0}}) {
    EXPECT_NEAR(Enumeration<>(4, fixed_pair(p, q), deterministic({width})).expected_tokens(), 1 + share, kExact);
  }
  // Then one draw from the rest: P = (.4, 0, .3, .2) / .9 against Q = (.1, 0, .3, .1) / .5.
  const double rest = 0.9 * overlap({0.4 / 0.9, 0, 0.3 / 0.9, 0.2 / 0.9}, {0.2, 0, 0.6, 0.2});
  EXPECT_NEAR(Enumeration<>(4, fixed_pair(p, q), {Level{1, 1}}).expected_tokens(), 1 + 0.1 + rest, kExact);
}

TEST(RejectionAcceptance, AnEqualDraftIsAlwaysAccepted) {
  for (const Pair& pair : all_pairs(3, 1)) {
    if (pair.name != "equal") continue;
    EXPECT_NEAR(Enumeration<>(3, pair, sampled({1, 1, 1})).expected_tokens(), 4, kExact);
  }
}

TEST(RejectionAcceptance, AtTemperatureZeroIsTheHitOfTheArgmax) {
  const Pair pair = fixed_pair({0, 1, 0}, {0.5, 0.3, 0.2});
  EXPECT_NEAR(Enumeration<>(3, pair, sampled({1})).expected_tokens(), 1.3, kExact);
  EXPECT_NEAR(Enumeration<>(3, pair, deterministic({1})).expected_tokens(), 1, kExact);
  EXPECT_NEAR(Enumeration<>(3, pair, deterministic({2})).expected_tokens(), 2, kExact);
}

}  // namespace
}  // namespace tandem
