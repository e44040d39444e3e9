// Losslessness without statistics: the exact law of a step, compared with the target's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/verify/enumeration.h"
#include "tests/verify/faulty_state.h"
#include "tests/verify/toy.h"
#include "verify/rejection.h"

namespace tandem {
namespace {

using testing::all_pairs;
using testing::DraftHabits;
using testing::Enumeration;
using testing::Fault;
using testing::FaultyState;
using testing::Level;
using testing::Pair;
using testing::Shape;

constexpr double kExact = 1e-12;
constexpr double kVisible = 1e-3;

Shape sampled(std::initializer_list<int> widths) {
  Shape shape;
  for (const int width : widths) shape.push_back({0, width});
  return shape;
}

Shape deterministic(std::initializer_list<int> widths) {
  Shape shape;
  for (const int width : widths) shape.push_back({width, 0});
  return shape;
}

struct Case {
  int vocab;
  Shape shape;
};

// Runs every relation of p and q; returns how many outcomes were walked.
long expect_lossless(const std::vector<Case>& cases, DraftHabits habits = {}, std::uint64_t seeds = 2) {
  long outcomes = 0;
  for (const Case& one : cases) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      for (const Pair& pair : all_pairs(one.vocab, 10 * seed)) {
        const Enumeration<> law(one.vocab, pair, one.shape, habits);
        const std::string where = pair.name + ", vocabulary " + std::to_string(one.vocab) + ", depth " +
                                  std::to_string(one.shape.size()) + ", seed " + std::to_string(seed);
        EXPECT_LT(law.total_variation(), kExact) << where;
        EXPECT_NEAR(law.total_weight(), 1, kExact) << where;
        outcomes += law.outcomes();
      }
    }
  }
  return outcomes;
}

TEST(Rejection, OutputDistributionIsTheTargetsOnChains) {
  std::vector<Case> cases;
  for (int vocab = 2; vocab <= 4; ++vocab) {
    for (const Shape& shape : {sampled({}), sampled({1}), sampled({1, 1}), sampled({1, 1, 1}), sampled({1, 1, 1, 1})}) {
      cases.push_back({vocab, shape});
    }
  }
  EXPECT_GT(expect_lossless(cases, {}, 4), 10000);
}

TEST(Rejection, OutputDistributionIsTheTargetsOnTrees) {
  std::vector<Case> cases;
  for (int vocab = 2; vocab <= 4; ++vocab) {
    for (const Shape& shape : {sampled({2, 1}), sampled({2, 2}), sampled({1, 2, 1})}) cases.push_back({vocab, shape});
  }
  cases.push_back({3, sampled({3, 2})});
  cases.push_back({4, sampled({4})});  // more siblings than most supports
  EXPECT_GT(expect_lossless(cases), 10000);
  // The widest tree has 24 * 12^3 outcomes: one seed, the two relations in which all of them are possible.
  for (const Pair& pair : all_pairs(4, 5)) {
    if (pair.name != "independent" && pair.name != "related") continue;
    const Enumeration<> law(4, pair, sampled({3, 2}));
    EXPECT_LT(law.total_variation(), kExact) << pair.name;
    EXPECT_GE(law.outcomes(), 24 * 12 * 12 * 12);
  }
}

TEST(Rejection, OutputDistributionIsTheTargetsWithDeterministicChildren) {
  std::vector<Case> cases;
  for (int vocab = 2; vocab <= 4; ++vocab) {
    for (const Shape& shape : {deterministic({1, 1, 1, 1}), deterministic({2, 1}), deterministic({2, 2}),
                               deterministic({1, 2, 1}), deterministic({3, 2}), deterministic({4})}) {
      cases.push_back({vocab, shape});
    }
  }
  expect_lossless(cases, {}, 4);
  expect_lossless(cases, {.skewed = true}, 4);
}

TEST(Rejection, OutputDistributionIsTheTargetsOnNodesThatMixBothKinds) {
  const std::vector<Shape> shapes{{Level{1, 1}},
                                  {Level{1, 1}, Level{1, 1}},
                                  {Level{1, 2}, Level{0, 1}},
                                  {Level{2, 1}, Level{1, 0}},
                                  {Level{0, 1}, Level{1, 1}, Level{0, 1}},
                                  {Level{1, 0}, Level{0, 2}}};
  std::vector<Case> cases;
  for (int vocab = 2; vocab <= 4; ++vocab) {
    for (const Shape& shape : shapes) cases.push_back({vocab, shape});
  }
  expect_lossless(cases);
  expect_lossless(cases, {.skewed = true});
}

// A sibling that repeats an earlier one is passed over, which makes independent draws lossless too.
TEST(Rejection, RepeatedSiblingsAreHarmless) {
  expect_lossless({{2, sampled({2, 1})}, {3, sampled({3})}, {3, sampled({2, 2})}, {3, {Level{1, 2}, Level{0, 1}}}},
                  {.with_replacement = true});
}

double total_variation(Fault fault, int vocab, const Shape& shape, const std::string& pair_name = "related") {
  for (const Pair& pair : all_pairs(vocab, 20)) {
    if (pair.name != pair_name) continue;
    return Enumeration<FaultyState>(vocab, pair, shape, {}, FaultyState(fault)).total_variation();
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

Pair fixed_pair(std::vector<double> p, std::vector<double> q) {
  return {"fixed", [p](auto) { return p; }, [q](auto) { return q; }};
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
