// Which noise may be used again in a later step: what enumeration cannot see. On the toy p = (1/3, 2/3), q = (2/3, 1/3)
// with the real keys, six tokens of successive steps are compared with the target's law.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/verify/wired_law.h"
#include "verify/block.h"
#include "verify/coupled.h"
#include "verify/rejection.h"
#include "verify/walk.h"

namespace tandem {
namespace {

using testing::chi_square_of;
using testing::Shape;
using testing::ToyLogits;
using testing::Wired;
using testing::WiredToy;

// 64 cells: a total variation of .0225 is seen with power .99 at level 1e-6 from 4 N TV^2 >= 122 on.
constexpr int kSequences = 60000;

Wired toy(Shape shape) {
  return {ToyLogits::constant({1.0 / 3, 2.0 / 3}),
          ToyLogits::constant({2.0 / 3, 1.0 / 3}),
          6,
          {1, 0, 1, 0},
          {std::move(shape)}};
}
const Shape kChain1{{0, 1}};
const Shape kChain2{{0, 1}, {0, 1}};
const Shape kChain3{{0, 1}, {0, 1}, {0, 1}};
const Shape kTree{{0, 2}, {0, 1}};
const Shape kMixed{{1, 1}, {0, 1}};

TEST(NoiseKeys, EveryLosslessRuleKeepsTheLawOverSeveralSteps) {
  for (const char* rule : {"rejection", "block", "coupled"}) {
    for (const Shape& shape : {kChain2, kChain3, kTree, kMixed}) {
      const auto result = chi_square_of(toy(shape), *make_verifier(rule), kSequences);
      EXPECT_TRUE(result.fits()) << rule << ": " << result.statistic << " of " << result.limit;
    }
  }
}

// The rules with keys of a test's choice.
struct Keys {
  // Of the coin that accepts `node` at `depth` in a step that starts at `start`.
  double (*accept)(const Sampler&, std::uint32_t start, int node, int depth);
  TokenId (*next)(const Sampler&, const Distribution&, std::uint32_t start, int last, int depth);
};

double own_coin(const Sampler& sampler, std::uint32_t start, int node, int) {
  return sampler.uniform(start, node, DrawPurpose::accept);
}
double coin_of_the_draft(const Sampler& sampler, std::uint32_t start, int node, int) {
  return sampler.uniform(start, node, DrawPurpose::draft);
}
double coin_of_the_sequence(const Sampler& sampler, std::uint32_t start, int node, int) {
  return sampler.uniform(start - start % WiredToy::kPositions, node, DrawPurpose::accept);
}
TokenId own_draw(const Sampler& sampler, const Distribution& p, std::uint32_t start, int last, int) {
  return sampler.draw(p, start, last, DrawPurpose::correction);
}

template <typename Follow>
void step_with_keys(WiredToy& toy, const Shape& shape, const Keys& keys, Follow&& follow) {
  const TokenTree& tree = toy.propose(shape);
  const Logits logits = toy.forward(tree);
  const std::uint32_t start = toy.context().position();
  Walk walk(tree, toy.context());
  Verdict verdict;
  std::vector<Distribution> targets(kMaxTreeNodes);
  const Distribution& next = follow(
      tree, verdict,
      [&](int node) -> const Distribution& {
        walk.go_to(node);
        toy.sampler().distribution(logits.row(node), toy.context(), targets[static_cast<std::size_t>(node)]);
        return targets[static_cast<std::size_t>(node)];
      },
      [&](int node, double probability) {
        return keys.accept(toy.sampler(), start, node, tree.depth(node)) < probability;
      });
  verdict.next = keys.next(toy.sampler(), next, start, verdict.path().back(), verdict.accepted());
  walk.commit(verdict);
}

template <typename Rule>
testing::ChiSquare with_keys(const Shape& shape, DraftDraw draw, const Keys& keys) {
  Rule rule;
  return chi_square_of(toy(shape), draw, kSequences,
                       [&](WiredToy& toy, const Shape& step) { step_with_keys(toy, step, keys, rule); });
}

// After a rejection the same positions are drafted again. Block verification has by then looked at the drafts behind
// the rejected token, so their noise may not come back.
TEST(NoiseKeysMutants, BlockMayNotUseThePositionsNoiseAgain) {
  using Rule = testing::Block<>;
  EXPECT_TRUE(with_keys<Rule>(kChain3, DraftDraw::independent, {own_coin, own_draw}).fits());
  EXPECT_FALSE(with_keys<Rule>(kChain3, DraftDraw::shared_noise, {own_coin, own_draw}).fits());
}

TEST(NoiseKeysMutants, RejectionMayNotShareACoinWithADraftOrAnotherStep) {
  using Rule = testing::Rejection<>;
  EXPECT_TRUE(with_keys<Rule>(kChain1, DraftDraw::independent, {own_coin, own_draw}).fits());
  EXPECT_FALSE(with_keys<Rule>(kChain1, DraftDraw::independent, {coin_of_the_draft, own_draw}).fits());
  EXPECT_FALSE(with_keys<Rule>(kChain1, DraftDraw::independent, {coin_of_the_sequence, own_draw}).fits());
}

// Shared noise belongs to the position. Keyed by the step, the tokens of one step would be drawn alike.
TEST(NoiseKeysMutants, CoupledMayNotUseTheNoiseOfTheStep) {
  const auto result =
      chi_square_of(toy(kChain3), DraftDraw::shared_noise, kSequences, [](WiredToy& toy, const Shape& shape) {
        const TokenTree& tree = toy.propose(shape);
        const Logits logits = toy.forward(tree);
        const std::uint32_t start = toy.context().position();
        Walk walk(tree, toy.context());
        Verdict verdict;
        Distribution target;
        follow_tokens(tree, verdict, [&](int node) {
          walk.go_to(node);
          toy.sampler().distribution(logits.row(node), toy.context(), target);
          return toy.sampler().draw_with_noise(target, start);
        });
        walk.commit(verdict);
      });
  EXPECT_FALSE(result.fits());
}

}  // namespace
}  // namespace tandem
