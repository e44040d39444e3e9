// The arithmetic at one node: edges, rounding, memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/sample/allocation_counter.h"
#include "tests/verify/toy.h"
#include "verify/rejection.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::support_of;

constexpr auto kSampled = ChildKind::sampled;
constexpr auto kDeterministic = ChildKind::deterministic;

TEST(NodeState, IsTheTargetUntilSomethingIsRejected) {
  const Distribution p = support_of({0.5, 0.5}), q = support_of({1.0, 0});
  NodeState state;
  state.begin(p, &q);
  EXPECT_EQ(&state.residual(), &p);
  EXPECT_EQ(state.accept_probability(0, kSampled), 0.5);
  EXPECT_EQ(&state.residual(), &p);
}

TEST(NodeState, AcceptsNothingTheTargetExcludes) {
  const Distribution p = support_of({0, 1}), q = support_of({0.5, 0.5});
  NodeState state;
  state.begin(p, &q);
  EXPECT_FALSE(0.0 < state.accept_probability(0, kSampled)) << "not even with u = 0";
  EXPECT_FALSE(0.0 < state.accept_probability(0, kDeterministic));
  EXPECT_EQ(state.accept_probability(1, kSampled), 1);
}

TEST(NodeState, FollowsTheRecursionByHand) {
  const Distribution p = support_of({0.1, 0.2, 0.3, 0.4}), q = support_of({0.4, 0.3, 0.2, 0.1});
  NodeState state;
  state.begin(p, &q);
  EXPECT_DOUBLE_EQ(state.accept_probability(3, kDeterministic), 0.4);
  state.reject(3, kDeterministic);  // P = (1, 2, 3, 0) / 6; Q = (4, 3, 2, 0) / 9
  EXPECT_DOUBLE_EQ(state.accept_probability(0, kSampled), (1.0 / 6) / (4.0 / 9));
  state.reject(0, kSampled);  // P = max(3 - 8, 6 - 6, 9 - 4) / 18 = token 2 alone; Q = (0, 3, 2) / 5
  EXPECT_DOUBLE_EQ(state.residual()[2], 1);
  EXPECT_LT(state.accept_probability(1, kSampled), 1e-15);
  EXPECT_EQ(state.accept_probability(2, kSampled), 1);
}

// A rejection that only rounding allows leaves nothing of P; the rule then draws from P itself.
TEST(NodeState, KeepsTheTargetWhereRoundingLeavesNoMass) {
  const Distribution p = support_of({0.3, 0.7});
  NodeState state;
  state.begin(p, &p);
  state.reject(0, kSampled);
  EXPECT_THAT(state.residual().tokens, ElementsAre(0, 1));
  EXPECT_THAT(state.residual().probabilities, ElementsAre(0.3, 0.7));
  const Distribution one = support_of({0, 1});
  state.begin(one, nullptr);
  EXPECT_EQ(state.accept_probability(1, kDeterministic), 1);
  state.reject(1, kDeterministic);
  EXPECT_THAT(state.residual().tokens, ElementsAre(1));
}

TEST(NodeState, KeepsATinyResidualExact) {
  Distribution p, q;
  p.add(0, 1 - 0x1p-52);
  p.add(1, 0x1p-52);
  q.add(0, 1.0);
  NodeState state;
  state.begin(p, &q);
  state.reject(0, kSampled);
  EXPECT_THAT(state.residual().tokens, ElementsAre(1));
  EXPECT_THAT(state.residual().probabilities, ElementsAre(1.0));
}

TEST(NodeState, PassesOverASampledChildThatWasNeverADraw) {
  const Distribution p = support_of({0.5, 0.25, 0.25}), q = support_of({0.5, 0.5, 0});
  NodeState state;
  state.begin(p, &q);
  EXPECT_EQ(state.accept_probability(2, kSampled), 0);
  state.reject(2, kSampled);
  EXPECT_EQ(&state.residual(), &p);
  state.begin(p, nullptr);
  EXPECT_EQ(state.accept_probability(0, kSampled), 0);
  state.reject(0, kSampled);
  EXPECT_EQ(&state.residual(), &p);
}

// The weights of a traversal (algorithms.md section 3.5).
TEST(NodeState, CarriesTheWeightOfTheNode) {
  const Distribution p = support_of({0.1, 0.2, 0.3, 0.4}), q = support_of({0.4, 0.3, 0.2, 0.1});
  NodeState state;
  state.begin(p, &q, 0.5);
  EXPECT_DOUBLE_EQ(state.accept_probability(0, kSampled), 0.125);  // .5 * .1 / .4
  EXPECT_EQ(state.accept_probability(3, kSampled), 1);             // .5 * .4 / .1, capped
  EXPECT_EQ(state.weight(), 0.5);
  state.reject(0, kSampled);  // S = max(.05 - .4, .1 - .3, .15 - .2, .2 - .1) = .1: token 3 alone
  EXPECT_NEAR(state.weight(), 0.1 / (0.1 + 0.5), 1e-15);
  EXPECT_THAT(state.residual().tokens, ElementsAre(3));
  state.begin(p, nullptr, 0.5);
  EXPECT_DOUBLE_EQ(state.accept_probability(3, kDeterministic), 0.2);
  state.reject(3, kDeterministic);  // S = .5 * .6
  EXPECT_NEAR(state.weight(), 0.3 / (0.3 + 0.5), 1e-15);
  EXPECT_NEAR(state.residual()[2], 0.5, 1e-15);
}

TEST(NodeState, AWeightOfOneStaysOne) {
  const Distribution p = support_of({0.1, 0.2, 0.3, 0.4}), q = support_of({0.4, 0.3, 0.2, 0.1});
  NodeState state;
  state.begin(p, &q);
  state.reject(3, kDeterministic);
  EXPECT_EQ(state.weight(), 1);
  state.reject(0, kSampled);
  EXPECT_EQ(state.weight(), 1);
  state.begin(p, &p);  // 0 / 0: a rejection that only rounding allows
  state.reject(0, kSampled);
  EXPECT_EQ(state.weight(), 1);
}

TEST(NodeState, LosesAllWeightWithItsOnlyToken) {
  const Distribution one = support_of({0, 1});
  NodeState state;
  state.begin(one, nullptr, 0.5);
  state.reject(1, kDeterministic);
  EXPECT_EQ(state.weight(), 0);
  EXPECT_THAT(state.residual().tokens, ElementsAre(1));
}

TEST(NodeState, StartsAfreshAtEachNode) {
  const Distribution p = support_of({0.5, 0.5}), q = support_of({0.9, 0.1});
  NodeState state;
  state.begin(p, &q);
  state.reject(1, kDeterministic);
  state.reject(0, kSampled);
  state.begin(p, &q);
  EXPECT_DOUBLE_EQ(state.accept_probability(0, kSampled), 0.5 / 0.9);
  EXPECT_EQ(&state.residual(), &p);
}

// A small target support is searched for in a large proposal, a large one is merged: the same result.
TEST(NodeState, SubtractsSparseAndDenseAlike) {
  Distribution q, dense, sparse;
  for (TokenId i = 0; i < 1000; ++i) q.add(i, 1e-3);
  for (const TokenId i : {0, 17, 500, 999, 2000}) sparse.add(i, 0.2);
  subtract_and_normalise(sparse, q);
  EXPECT_EQ(sparse.size(), 5u);
  EXPECT_DOUBLE_EQ(sparse[17], 0.199 / (4 * 0.199 + 0.2));
  EXPECT_DOUBLE_EQ(sparse[2000], 0.2 / (4 * 0.199 + 0.2));
  for (TokenId i = 0; i < 1000; i += 2) dense.add(i, i % 4 == 0 ? 0.5e-3 : 3.5e-3);
  subtract_and_normalise(dense, q);
  EXPECT_EQ(dense.size(), 250u);
  EXPECT_EQ(dense[4], 0);
  EXPECT_NEAR(dense[6], 1.0 / 250, 1e-15);
}

TEST(NodeState, AllocatesNothingOnceWarm) {
  Distribution p, q;
  for (TokenId i = 0; i < 3000; ++i) p.add(i, i % 2 == 0 ? 0.5 / 1500 : 1.5 / 1500), q.add(i, 1.0 / 3000);
  NodeState state;
  const auto use = [&] {
    state.begin(p, &q);
    state.reject(0, kDeterministic);
    for (TokenId child = 2; child < 12; child += 2) {
      state.accept_probability(child, kSampled);
      state.reject(child, kSampled);
    }
  };
  use();
  const long before = testing::allocations();
  use();
  EXPECT_EQ(testing::allocations(), before);
}

}  // namespace
}  // namespace tandem
