// The wired rule: sampler, real noise and its keys, several successive steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/base/error.h"
#include "tests/sample/allocation_counter.h"
#include "tests/sample/chi_square.h"
#include "tests/verify/wired_toy.h"
#include "verify/rejection.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::Shape;
using testing::ToyLogits;
using testing::WiredToy;

const Shape kPlain{};
const Shape kChain1{{0, 1}};
const Shape kChain3{{0, 1}, {0, 1}, {0, 1}};
const Shape kTree{{0, 2}, {0, 2}};
const Shape kMixed{{1, 1}, {1, 1}};
const Shape kDeterministic{{2, 0}, {1, 0}};

// p of one row written out: softmax of logits / temperature over the `top_k` best.
std::vector<double> softmax(std::span<const float> logits, const SamplingOptions& options) {
  std::vector<double> law(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < law.size(); ++i) {
    std::size_t better = 0;
    for (std::size_t j = 0; j < law.size(); ++j) better += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
    if (options.top_k == 0 || better < static_cast<std::size_t>(options.top_k)) {
      total += law[i] = std::exp(logits[i] / options.temperature);
    }
  }
  for (double& probability : law) probability /= total;
  return law;
}

// Probability of every sequence of `length` tokens under plain sampling, by its number in base vocabulary.
std::vector<double> joint_law(const ToyLogits& target, const SamplingOptions& options, int length) {
  std::vector<double> law{1};
  std::vector<std::vector<TokenId>> contexts{{0, 1}};
  for (int i = 0; i < length; ++i) {
    std::vector<double> longer;
    std::vector<std::vector<TokenId>> next;
    for (std::size_t at = 0; at < law.size(); ++at) {
      const std::vector<double> row = softmax(target.row(contexts[at]), options);
      for (TokenId token = 0; token < target.vocab(); ++token) {
        longer.push_back(law[at] * row[token]);
        next.push_back(contexts[at]);
        next.back().push_back(token);
      }
    }
    law = std::move(longer);
    contexts = std::move(next);
  }
  return law;
}

std::size_t number_of(std::span<const TokenId> tokens, int length, int vocab) {
  std::size_t number = 0;
  for (int i = 0; i < length; ++i) number = number * vocab + tokens[i];
  return number;
}

struct Wired {
  int vocab;
  int length;  // tokens whose joint law is compared
  SamplingOptions options;
  std::vector<Shape> shapes;  // of successive steps, over and over
};

// `step` takes (toy, shape) and commits tokens.
template <typename Step>
testing::ChiSquare chi_square_of(const Wired& wired, int sequences, Step&& step) {
  const ToyLogits target(wired.vocab, 77), draft(wired.vocab, 78);
  const std::vector<double> law = joint_law(target, wired.options, wired.length);
  std::vector<double> counts(law.size());
  WiredToy toy(target, draft, wired.options, Noise{20240229, 0});
  for (int sequence = 0; sequence < sequences; ++sequence) {
    toy.restart(static_cast<std::uint32_t>(sequence));
    for (std::size_t i = 0; static_cast<int>(toy.generated().size()) < wired.length; ++i) {
      step(toy, wired.shapes[i % wired.shapes.size()]);
    }
    ++counts[number_of(toy.generated(), wired.length, wired.vocab)];
  }
  return testing::chi_square(counts, law);
}

// Total variation .03 is seen with power .99 from 4 N TV^2 >= 200, the bound for 243 cells: N = 56000. Chains of one
// take at least three steps to five tokens, the others about as many on average.
constexpr int kSequences = 60000;

TEST(Rejection, WiredOutputIsTheTargetsOverSeveralSteps) {
  const SamplingOptions warm{0.9, 0, 1, 0}, filtered{1.2, 3, 1, 0};
  const std::vector<Wired> cases{
      {3, 5, warm, {kChain1}},
      {3, 5, warm, {kChain3}},
      {3, 5, warm, {kTree}},
      {3, 5, warm, {kMixed}},
      {3, 5, warm, {kDeterministic}},
      {3, 5, warm, {kPlain}},
      {3, 5, warm, {kPlain, kChain1, kTree}},  // plain steps use the other noise
      {5, 4, filtered, {kTree, kChain1}},
  };
  const auto verifier = make_verifier("rejection");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto result =
        chi_square_of(cases[i], kSequences, [&](WiredToy& toy, const Shape& shape) { toy.step(*verifier, shape); });
    EXPECT_LT(result.statistic, result.limit) << "case " << i;
  }
}

// One step of the rule with the keys of its three kinds of draws left to the caller.
template <typename Position>
void step_with_keys(WiredToy& toy, const Shape& shape, DrawPurpose accept, DrawPurpose correction,
                    Position&& position_of) {
  const TokenTree& tree = toy.propose(shape);
  const Logits logits = toy.forward(tree);
  Context& context = toy.context();
  const std::uint32_t start = context.position();
  NodeState state;
  Verdict verdict;
  Distribution target;
  const Distribution& next = follow_proposal(
      tree, state, verdict,
      [&](int node) -> const Distribution& {
        if (node > 0) context.push(tree.token(node));
        toy.sampler().distribution(logits.row(node), context, target);
        return target;
      },
      [&](int child, double probability) {
        return toy.sampler().uniform(position_of(start), child, accept) < probability;
      });
  context.push(toy.sampler().draw(next, position_of(start), verdict.path().back(), correction));
}

TEST(RejectionMutants, ReusedNoiseIsSeen) {
  const Wired wired{3, 5, {0.9, 0, 1, 0}, {kChain1}};
  const auto own = [](std::uint32_t start) { return start; };
  // Every step of a sequence draws the numbers of one position.
  const auto fixed = [](std::uint32_t start) { return start - start % WiredToy::kPositions; };
  const auto run = [&](DrawPurpose accept, DrawPurpose correction, auto position_of) {
    return chi_square_of(wired, kSequences, [&](WiredToy& toy, const Shape& shape) {
      step_with_keys(toy, shape, accept, correction, position_of);
    });
  };
  EXPECT_TRUE(run(DrawPurpose::accept, DrawPurpose::correction, own).fits());
  EXPECT_FALSE(run(DrawPurpose::draft, DrawPurpose::correction, own).fits()) << "acceptance by the draft's number";
  EXPECT_FALSE(run(DrawPurpose::accept, DrawPurpose::correction, fixed).fits()) << "the same numbers in every step";
}

// Measured acceptance against the sum of min(p, q): 4 standard deviations of 1e5 draws.
TEST(RejectionAcceptance, MeasuredShareIsTheOverlap) {
  constexpr int kDraws = 100000;
  const SamplingOptions options{0.9, 0, 1, 0};
  const ToyLogits target(5, 77), draft(5, 78);
  const std::vector<double> p = softmax(target.row(std::vector<TokenId>{0, 1}), options);
  const std::vector<double> q = softmax(draft.row(std::vector<TokenId>{0, 1}), {1, 0, 1, 0});
  double alpha = 0;
  for (std::size_t i = 0; i < p.size(); ++i) alpha += std::min(p[i], q[i]);
  const auto verifier = make_verifier("rejection");
  int sampled = 0, deterministic = 0;
  WiredToy toy(target, draft, options, Noise{5, 0});
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    toy.restart(i);
    sampled += toy.step(*verifier, kChain1).accepted();
    toy.restart(i);
    deterministic += toy.step(*verifier, {{1, 0}}).accepted();
  }
  const auto within = [](double share) { return 4 * std::sqrt(share * (1 - share) / kDraws); };
  EXPECT_NEAR(sampled / double{kDraws}, alpha, within(alpha));
  EXPECT_NEAR(deterministic / double{kDraws}, p[0], within(p[0]));
}

std::vector<TokenId> generate(Noise noise, const std::vector<Shape>& shapes, SamplingOptions options, int length) {
  const ToyLogits target(5, 77), draft(5, 78);
  const auto verifier = make_verifier("rejection");
  WiredToy toy(target, draft, options, noise);
  for (std::size_t i = 0; static_cast<int>(toy.generated().size()) < length; ++i) {
    toy.step(*verifier, shapes[i % shapes.size()]);
  }
  const auto tokens = toy.generated().first(static_cast<std::size_t>(length));
  return {tokens.begin(), tokens.end()};
}

// B31.
TEST(Rejection, TheSameSeedGivesTheSameTokens) {
  const SamplingOptions options{1, 0, 1, 0};
  for (const Shape& shape : {kPlain, kChain1, kChain3, kTree, kMixed}) {
    const auto tokens = generate(Noise{42, 0}, {shape}, options, 200);
    EXPECT_EQ(tokens, generate(Noise{42, 0}, {shape}, options, 200));
    EXPECT_NE(tokens, generate(Noise{42, 1}, {shape}, options, 200));
    EXPECT_NE(tokens, generate(Noise{43, 0}, {shape}, options, 200));
  }
}

// B31: a proposal of nothing is plain sampling by (seed, position, token).
TEST(Rejection, AStepWithoutAProposalIsPlainDecoding) {
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

TEST(Rejection, AtTemperatureZeroEveryShapeGivesTheGreedyText) {
  const SamplingOptions greedy{0, 0, 1, 0};
  const auto plain = generate(Noise{1, 0}, {kPlain}, greedy, 200);
  for (const Shape& shape : {kChain1, kChain3, kTree, kMixed, kDeterministic}) {
    for (const std::uint64_t seed : {1, 2, 3}) EXPECT_EQ(generate(Noise{seed, 0}, {shape}, greedy, 200), plain);
  }
}

// B20: rejection at place 0, 1, k - 1 and none; the context is the accepted prefix and one token more, every round.
TEST(Rejection, CommitsTheAcceptedPrefixAndOneToken) {
  const ToyLogits target(5, 77), draft(5, 78);
  const auto verifier = make_verifier("rejection");
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

TEST(Rejection, TestsEveryVisitedChildOfATreeAndNoOther) {
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
  const Verdict verdict = make_verifier("rejection")->verify(tree, Logits{rows, 5}, sampler, context);
  EXPECT_THAT(verdict.path(), ElementsAre(0, 2, 5));
  EXPECT_EQ(verdict.next, 3);
  EXPECT_EQ(verdict.tested, std::uint64_t{0b1110110});  // 1, 2; 4, 5; 6; node 3 hangs below a rejected one
  EXPECT_THAT(context.tokens(), ElementsAre(0, 2, 4, 3));
}

TEST(Rejection, AllocatesNothingOnceWarm) {
  const ToyLogits target(5, 77), draft(5, 78);
  const auto verifier = make_verifier("rejection");
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

TEST(Rejection, ABadRowIsAnErrorThatLeavesTheContextAsItWas) {
  TokenTree tree(0);
  tree.add(0, 2, ChildKind::deterministic, DraftSource::other);
  std::vector<float> rows = pointing_at(2);
  rows.resize(10, std::numeric_limits<float>::quiet_NaN());
  Context context;
  context.push(std::vector<TokenId>{4, 0});
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({temperature, 0, 1, 0}, Noise{}, {});
    try {
      make_verifier("rejection")->verify(tree, Logits{rows, 5}, sampler, context);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::numeric);
      EXPECT_THAT(error.what(), HasSubstr("position 3"));
    }
    EXPECT_THAT(context.tokens(), ElementsAre(4, 0));
  }
}

}  // namespace
}  // namespace tandem
