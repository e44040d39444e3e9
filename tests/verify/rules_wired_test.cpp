// The wired rules: sampler, real noise and its keys, several successive steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/base/error.h"
#include "tests/sample/allocation_counter.h"
#include "tests/verify/wired_law.h"

namespace tandem {
namespace {

using testing::chi_square_of;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::Shape;
using testing::ToyLogits;
using testing::Wired;
using testing::WiredToy;

const Shape kPlain{};
const Shape kChain1{{0, 1}};
const Shape kChain3{{0, 1}, {0, 1}, {0, 1}};
const Shape kTree{{0, 2}, {0, 2}};
const Shape kMixed{{1, 1}, {1, 1}};
const Shape kDeterministic{{2, 0}, {1, 0}};

// One rule each.
class WiredRule : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Verifier> make() const { return make_verifier(GetParam()); }
  std::vector<TokenId> generate(Noise noise, const std::vector<Shape>& shapes, SamplingOptions options, int length) {
    const ToyLogits target(5, 77), draft(5, 78);
    const auto verifier = make();
    WiredToy toy(target, draft, options, noise, verifier->draft_draw());
    for (std::size_t i = 0; static_cast<int>(toy.generated().size()) < length; ++i) {
      toy.step(*verifier, shapes[i % shapes.size()]);
    }
    const auto tokens = toy.generated().first(static_cast<std::size_t>(length));
    return {tokens.begin(), tokens.end()};
  }
};

// Total variation .03 is seen with power .99 from 4 N TV^2 >= 200, the bound for 243 cells: N = 56000. Chains of one
// take at least three steps to five tokens, the others about as many on average.
constexpr int kSequences = 60000;

TEST_P(WiredRule, OutputIsTheTargetsOverSeveralStepsWhereLossless) {
  const SamplingOptions warm{0.9, 0, 1, 0}, filtered{1.2, 3, 1, 0};
  const ToyLogits target(3, 77), draft(3, 78);
  const std::vector<Wired> cases{
      {target, draft, 5, warm, {kChain1}},
      {target, draft, 5, warm, {kChain3}},
      {target, draft, 5, warm, {kTree}},
      {target, draft, 5, warm, {kMixed}},
      {target, draft, 5, warm, {kDeterministic}},
      {target, draft, 5, warm, {kPlain}},
      {target, draft, 5, warm, {kPlain, kChain1, kTree}},  // plain steps use the other noise
      {ToyLogits(5, 77), ToyLogits(5, 78), 4, filtered, {kTree, kChain1}},
  };
  const auto verifier = make();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto result = chi_square_of(cases[i], *verifier, kSequences);
    const bool plain = cases[i].shapes.size() == 1 && cases[i].shapes.front().empty();
    EXPECT_EQ(result.fits(), plain || verifier->lossless()) << "case " << i << ": " << result.statistic;
  }
}

// B31.
TEST_P(WiredRule, TheSameSeedGivesTheSameTokens) {
  const SamplingOptions options{1, 0, 1, 0};
  for (const Shape& shape : {kPlain, kChain1, kChain3, kTree, kMixed}) {
    const auto tokens = generate(Noise{42, 0}, {shape}, options, 200);
    EXPECT_EQ(tokens, generate(Noise{42, 0}, {shape}, options, 200));
    EXPECT_NE(tokens, generate(Noise{42, 1}, {shape}, options, 200));
    EXPECT_NE(tokens, generate(Noise{43, 0}, {shape}, options, 200));
  }
}

// B31: a proposal of nothing is plain sampling by (seed, position, token).
TEST_P(WiredRule, AStepWithoutAProposalIsPlainDecoding) {
  const SamplingOptions options{1, 0, 0.9, 0};
  const ToyLogits target(5, 77);
  Sampler sampler(options, Noise{42, 0}, {});
  Context context;
  context.push(std::vector<TokenId>{0, 1});
  Distribution p;
  for (int i = 0; i < 200; ++i) {
    sampler.distribution(target.row(context.tokens()), context, p);
    context.push(sampler.draw_with_noise(p, context.position()));
  }
  EXPECT_THAT(generate(Noise{42, 0}, {kPlain}, options, 200), ElementsAreArray(context.tokens().subspan(2)));
}

TEST_P(WiredRule, AtTemperatureZeroEveryShapeGivesTheGreedyText) {
  const SamplingOptions greedy{0, 0, 1, 0};
  const auto plain = generate(Noise{1, 0}, {kPlain}, greedy, 200);
  for (const Shape& shape : {kChain1, kChain3, kTree, kMixed, kDeterministic}) {
    for (const std::uint64_t seed : {1, 2, 3}) EXPECT_EQ(generate(Noise{seed, 0}, {shape}, greedy, 200), plain);
  }
}

// B20: rejection at place 0, 1, k - 1 and none; the context is the accepted prefix and one token more, every round.
TEST_P(WiredRule, CommitsTheAcceptedPrefixAndOneToken) {
  const ToyLogits target(5, 77), draft(5, 78);
  const auto verifier = make();
  constexpr int kLength = 4;
  for (const SamplingOptions& options : {SamplingOptions{0, 0, 1, 0}, SamplingOptions{0.8, 0, 1, 0}}) {
    std::vector<int> seen(kLength + 1);
    WiredToy toy(target, draft, options, Noise{9, 0});
    TokenTree tree;
    for (int round = 0; toy.generated().size() < 256; ++round) {
      const int place = round % (kLength + 1);
      const std::vector<TokenId> before(toy.context().tokens().begin(), toy.context().tokens().end());
      tree.clear(before.back());
      for (int i = 0; i < kLength; ++i) {
        // At temperature 0: the first `place` tokens are the target's choice, the next one is not.
        std::vector<TokenId> history = before;
        for (int node = 1; node < tree.size(); ++node) history.push_back(tree.token(node));
        const auto row = target.row(history);
        const auto best = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
        const bool right = i < place;
        tree.add(i, right ? best : (best + 1) % 5, ChildKind::deterministic, DraftSource::other);
      }
      const Verdict verdict = verifier->verify(tree, toy.forward(tree), toy.sampler(), toy.context());
      std::vector<TokenId> expected = before;
      for (int i = 1; i <= verdict.accepted(); ++i) {
        EXPECT_EQ(verdict.path()[i], i);
        expected.push_back(tree.token(i));
      }
      expected.push_back(verdict.next);
      EXPECT_THAT(toy.context().tokens(), ElementsAreArray(expected));
      EXPECT_EQ(toy.context().position(), before.size() + verdict.accepted() + 1);
      // Tested: up to and including the first rejection, never node 0.
      const int tested = std::min(verdict.accepted() + 1, kLength);
      EXPECT_EQ(verdict.tested, ((std::uint64_t{1} << tested) - 1) << 1);
      if (options.temperature == 0) {
        EXPECT_EQ(verdict.accepted(), place);
      }
      ++seen[verdict.accepted()];
    }
    for (const int place : {0, 1, kLength - 1, kLength}) EXPECT_GT(seen[place], 0) << place;
  }
}

// Logits under which exactly one token is likely.
std::vector<float> pointing_at(TokenId token) {
  std::vector<float> row(5, 0.0f);
  row[token] = 100;
  return row;
}

TEST_P(WiredRule, TestsEveryVisitedChildOfATreeAndNoOther) {
  //      0
  //    1   2      the target wants 2, then 5, then a token nobody proposed
  //   3   4 5
  //         6
  TokenTree tree(0);
  for (const auto& [parent, token] :
       std::vector<std::pair<int, TokenId>>{{0, 1}, {0, 2}, {1, 1}, {2, 3}, {2, 4}, {5, 0}}) {
    tree.add(parent, token, ChildKind::deterministic, DraftSource::other);
  }
  std::vector<float> rows;
  for (const TokenId wanted : {2, 0, 4, 0, 0, 3, 0}) {
    const auto row = pointing_at(wanted);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  Context context;
  context.push(0);
  Sampler sampler({0, 0, 1, 0}, Noise{}, {});
  const Verdict verdict = make()->verify(tree, Logits{rows, 5}, sampler, context);
  EXPECT_THAT(verdict.path(), ElementsAre(0, 2, 5));
  EXPECT_EQ(verdict.next, 3);
  EXPECT_EQ(verdict.tested, std::uint64_t{0b1110110});  // 1, 2; 4, 5; 6; node 3 hangs below a rejected one
  EXPECT_THAT(context.tokens(), ElementsAre(0, 2, 4, 3));
}

TEST_P(WiredRule, AllocatesNothingOnceWarm) {
  const ToyLogits target(5, 77), draft(5, 78);
  const auto verifier = make();
  WiredToy toy(target, draft, {0.9, 4, 0.95, 0}, Noise{1, 0});
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (const Shape* shape : {&kPlain, &kChain3, &kTree, &kMixed, &kDeterministic}) toy.step(*verifier, *shape);
    }
  };
  steps(200);
  toy.restart(1000);  // as long a sequence again, so that its history fits too
  const long before = testing::allocations();
  steps(190);
  EXPECT_EQ(testing::allocations(), before);
}

TEST_P(WiredRule, ABadRowIsAnErrorThatLeavesTheContextAsItWas) {
  TokenTree tree(0);
  tree.add(0, 2, ChildKind::deterministic, DraftSource::other);
  std::vector<float> rows = pointing_at(2);
  rows.resize(10, std::numeric_limits<float>::quiet_NaN());
  Context context;
  context.push(std::vector<TokenId>{4, 0});
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({temperature, 0, 1, 0}, Noise{}, {});
    try {
      make()->verify(tree, Logits{rows, 5}, sampler, context);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::numeric);
      EXPECT_THAT(error.what(), HasSubstr("position 3"));
    }
    EXPECT_THAT(context.tokens(), ElementsAre(4, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, WiredRule, ::testing::Values("rejection", "block", "coupled", "typical"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tandem
