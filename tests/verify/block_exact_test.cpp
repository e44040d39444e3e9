// Losslessness of block verification without statistics, and that it never accepts less than rejection.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/verify/exact_cases.h"
#include "tests/verify/faulty_state.h"

namespace tandem {
namespace {

using namespace testing;

TEST(Block, OutputDistributionIsTheTargetsOnTreesGrownBestFirst) { expect_lossless_when_grown_best_first<Block<>>(); }

TEST(Block, OutputDistributionIsTheTargetsOnChains) { EXPECT_GT(expect_lossless<Block<>>(chains(), {}, 4), 10000); }

TEST(Block, OutputDistributionIsTheTargetsOnTrees) {
  EXPECT_GT(expect_lossless<Block<>>(trees()), 10000);
  expect_lossless_on_the_widest_tree<Block<>>();
}

TEST(Block, OutputDistributionIsTheTargetsWithDeterministicChildren) {
  expect_lossless<Block<>>(deterministic_trees(), {}, 4);
  expect_lossless<Block<>>(deterministic_trees(), {.skewed = true}, 4);
}

TEST(Block, OutputDistributionIsTheTargetsOnNodesThatMixBothKinds) {
  expect_lossless<Block<>>(mixed_nodes());
  expect_lossless<Block<>>(mixed_nodes(), {.skewed = true});
}

TEST(Block, RepeatedSiblingsAreHarmless) { expect_lossless<Block<>>(repeating_trees(), {.with_replacement = true}); }

double total_variation(Fault fault, int vocab, const Shape& shape, const std::string& pair_name = "related") {
  for (const Pair& pair : all_pairs(vocab, 20)) {
    if (pair.name != pair_name) continue;
    return Enumeration<Block<FaultyState>>(vocab, pair, shape, {}, Block(FaultyState(fault))).total_variation();
  }
  ADD_FAILURE() << "no pair " << pair_name;
  return 0;
}

TEST(BlockMutants, TheHarnessPassesTheRuleWithoutAFault) {
  EXPECT_LT(total_variation(Fault::none, 3, sampled({1, 1, 1})), kExact);
  EXPECT_LT(total_variation(Fault::none, 4, sampled({2, 2})), kExact);
  EXPECT_LT(total_variation(Fault::none, 4, {Level{1, 2}, Level{1, 1}}), kExact);
}

TEST(BlockMutants, EveryFaultIsSeen) {
  struct Mutant {
    Fault fault;
    Shape shape;
  };
  const std::vector<Mutant> mutants{{Fault::weight_not_capped, sampled({1, 1, 1})},
                                    {Fault::weight_not_capped, sampled({2, 2})},
                                    {Fault::weight_stays_after_rejection, sampled({1, 1, 1})},
                                    {Fault::weight_stays_after_rejection, sampled({2, 1})},
                                    {Fault::weight_stays_after_rejection, deterministic({1, 1})},
                                    {Fault::residual_without_weight, sampled({1, 1, 1})},
                                    {Fault::residual_without_weight, sampled({2, 2})},
                                    {Fault::residual_is_target, sampled({1, 1, 1})},
                                    {Fault::residual_is_target, sampled({2, 1})},
                                    {Fault::residual_zeroes_child, sampled({1, 1, 1})},
                                    {Fault::bonus_from_proposal, sampled({1, 1, 1})},
                                    {Fault::bonus_from_proposal, sampled({2, 1})},
                                    {Fault::no_renormalisation, sampled({2, 1})},
                                    {Fault::no_renormalisation, sampled({2, 2})},
                                    {Fault::deterministic_by_ratio, deterministic({1, 1})},
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

// p = q = (.6, .4), only token 0 is kept when drawn: the output becomes (.84, .16), whatever the rule.
TEST(BlockMutants, DroppingADrawnTokenIsSeen) {
  const Pair pair = fixed_pair({0.6, 0.4}, {0.6, 0.4});
  EXPECT_NEAR(Enumeration<Block<>>(2, pair, sampled({1}), {.drop_all_but_token_0 = true}).total_variation(), 0.24,
              1e-9);
  EXPECT_LT(Enumeration<Block<>>(2, pair, sampled({1})).total_variation(), kExact);
}

// Section 4 of arXiv 2403.10444, written out: weights w_i down the chain, then the largest i with eta_i <= h_i.
std::vector<double> length_law_of_the_paper(const Pair& pair, const Path& tokens) {
  const std::size_t length = tokens.size();
  std::vector<double> w{1};
  std::vector<double> h(length + 1, 1);
  for (std::size_t i = 1; i <= length; ++i) {
    const Path before(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    const TokenId token = tokens[i - 1];
    w.push_back(std::min(w.back() * pair.target(before)[token] / pair.draft(before)[token], 1.0));
    h[i] = w[i];
    if (i == length) break;
    const Path here(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i));
    const std::vector<double> p = pair.target(here), q = pair.draft(here);
    double mass = 0;
    for (std::size_t x = 0; x < p.size(); ++x) mass += std::max(w[i] * p[x] - q[x], 0.0);
    h[i] = mass + 1 - w[i] > 0 ? mass / (mass + 1 - w[i]) : 1;
  }
  std::vector<double> law(length + 1);
  double none_above = 1;
  for (std::size_t i = length; i > 0; --i) law[i] = none_above * h[i], none_above *= 1 - h[i];
  law[0] = none_above;
  return law;
}

TEST(Block, OnAChainIsTheRuleOfThePaper) {
  constexpr int kVocab = 3, kLength = 3;
  for (const Pair& pair : all_pairs(kVocab, 40)) {
    if (pair.name != "independent" && pair.name != "related" && pair.name != "peaked") continue;
    for (int code = 0; code < kVocab * kVocab * kVocab; ++code) {
      const Path tokens{code / 9, code / 3 % 3, code % 3};
      TokenTree tree(0);
      std::vector<Distribution> targets;
      for (int i = 0; i <= kLength; ++i) {
        const Path here(tokens.begin(), tokens.begin() + i);
        targets.push_back(support_of(pair.target(here)));
        tree.set_proposal(i) = support_of(pair.draft(here));
        if (i < kLength) add_child(tree, i, tokens[static_cast<std::size_t>(i)], ChildKind::sampled);
      }
      std::vector<double> law(kLength + 1);
      Block<> rule;
      for_each_branch(
          rule, tree, [&](int node) -> const Distribution& { return targets[static_cast<std::size_t>(node)]; },
          [&](const Verdict& verdict, const Distribution&, double probability) {
            law[static_cast<std::size_t>(verdict.accepted())] += probability;
          });
      const std::vector<double> expected = length_law_of_the_paper(pair, tokens);
      for (int i = 0; i <= kLength; ++i) EXPECT_NEAR(law[i], expected[i], kExact) << pair.name << ' ' << code;
    }
  }
}

// Two tokens, p = (1/3, 2/3), q = (2/3, 1/3), length 2: 11/9 accepted on average where rejection has 10/9.
TEST(BlockAcceptance, GivesTheToyValueOfThePaper) {
  const Pair pair = fixed_pair({1.0 / 3, 2.0 / 3}, {2.0 / 3, 1.0 / 3});
  EXPECT_NEAR(Enumeration<Block<>>(2, pair, sampled({1, 1})).expected_tokens(), 1 + 11.0 / 9, kExact);
  EXPECT_NEAR(Enumeration<>(2, pair, sampled({1, 1})).expected_tokens(), 1 + 10.0 / 9, kExact);
}

TEST(BlockAcceptance, IsNeverBelowRejection) {
  std::vector<Case> cases = chains();
  for (const auto& more : {trees(), deterministic_trees(), mixed_nodes()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  int better = 0;
  for (const Case& one : cases) {
    for (const Pair& pair : all_pairs(one.vocab, 30)) {
      const double block = Enumeration<Block<>>(one.vocab, pair, one.shape).expected_tokens();
      const double rejection = Enumeration<>(one.vocab, pair, one.shape).expected_tokens();
      EXPECT_GE(block, rejection - kExact) << shown(one, pair);
      better += block > rejection + kVisible;
    }
  }
  EXPECT_GT(better, 50);
}

// One draft, and greedy decoding, leave nothing to gain: both rules accept alike.
TEST(BlockAcceptance, EqualsRejectionAtLengthOneAndAtTemperatureZero) {
  for (const Pair& pair : all_pairs(4, 30)) {
    EXPECT_NEAR(Enumeration<Block<>>(4, pair, sampled({1})).expected_tokens(),
                Enumeration<>(4, pair, sampled({1})).expected_tokens(), kExact);
    if (!pair.name.ends_with("one-hot") && pair.name != "one-hot target") continue;
    for (const Shape& shape : {sampled({1, 1, 1}), deterministic({2, 2}), Shape{{1, 1}, {1, 1}}}) {
      EXPECT_NEAR(Enumeration<Block<>>(4, pair, shape).expected_tokens(),
                  Enumeration<>(4, pair, shape).expected_tokens(), kExact)
          << pair.name;
    }
  }
}

// Tested are the visited children of the accepted path, so that acceptance reads as under the other rules.
TEST(Block, TestsTheVisitedChildrenOfTheAcceptedPath) {
  TokenTree tree(0);
  //      0
  //    1   2      token 1 has no share of the target: node 1 and all below it are out
  //   3   4
  tree.add(0, 1, ChildKind::deterministic, DraftSource::other);
  tree.add(0, 0, ChildKind::deterministic, DraftSource::other);
  tree.add(1, 0, ChildKind::deterministic, DraftSource::other);
  tree.add(2, 1, ChildKind::deterministic, DraftSource::other);
  const Distribution only_zero = support_of({1, 0});
  Block<> rule;
  Verdict verdict;
  std::vector<int> asked;
  const Distribution& next = rule(
      tree, verdict, [&](int node) -> const Distribution& { return asked.push_back(node), only_zero; },
      [](int, double probability) { return 0.5 < probability; });
  EXPECT_EQ(verdict.accepted(), 1);
  EXPECT_EQ(verdict.path().back(), 2);
  EXPECT_EQ(verdict.tested, std::uint64_t{0b10110});  // 1 and 2; 4 below 2, which the target excludes
  EXPECT_EQ(asked, (std::vector<int>{0, 2}));
  EXPECT_EQ(next.tokens, std::vector<TokenId>{0});
}

}  // namespace
}  // namespace tandem
