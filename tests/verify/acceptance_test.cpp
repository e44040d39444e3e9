// Measured acceptance of the wired rules against closed forms: finds rules that are lossless but wasteful.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/verify/wired_law.h"
#include "verify/typical.h"

namespace tandem {
namespace {

using testing::Shape;
using testing::softmax;
using testing::ToyLogits;
using testing::WiredToy;

constexpr int kDraws = 100000;

struct Mean {
  double value, sigma;  // sigma: of the mean
};

// Accepted drafts of the first step, over sequences with noise of their own.
Mean measured(const std::string& rule, const ToyLogits& target, const ToyLogits& draft, const Shape& shape) {
  const auto verifier = make_verifier(rule);
  WiredToy toy(target, draft, {1, 0, 1, 0}, Noise{5, 0}, verifier->draft_draw());
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    toy.restart(i);
    const double accepted = toy.step(*verifier, shape).accepted();
    sum += accepted, squares += accepted * accepted;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt((squares / kDraws - mean * mean) / kDraws)};
}

struct Laws {
  std::vector<double> p, q;
};
Laws laws(const ToyLogits& target, const ToyLogits& draft) {
  const std::vector<TokenId> first{0, 1};
  return {softmax(target.row(first), {1, 0, 1, 0}), softmax(draft.row(first), {1, 0, 1, 0})};
}

double overlap(const Laws& l) {
  double sum = 0;
  for (std::size_t i = 0; i < l.p.size(); ++i) sum += std::min(l.p[i], l.q[i]);
  return sum;
}

// Both argmaxes of log-probability plus the same Gumbel noise fall on one token: sum_i 1 / sum_j max(p_j/p_i, q_j/q_i)
// (Daliri et al., arXiv 2408.07978).
double shared_noise_agreement(const Laws& l) {
  double agreement = 0;
  for (std::size_t i = 0; i < l.p.size(); ++i) {
    double rivals = 0;
    for (std::size_t j = 0; j < l.p.size(); ++j) rivals += std::max(l.p[j] / l.p[i], l.q[j] / l.q[i]);
    agreement += 1 / rivals;
  }
  return agreement;
}

void expect_near(const Mean& mean, double expected, const std::string& what) {
  EXPECT_NEAR(mean.value, expected, 4 * mean.sigma) << what;
}

TEST(Acceptance, OfOneDraftIsTheClosedForm) {
  for (const std::uint64_t seed : {77, 177, 277}) {
    const ToyLogits target(5, seed), draft(5, seed + 1);
    const Laws l = laws(target, draft);
    const double alpha = overlap(l), shared = shared_noise_agreement(l);
    ASSERT_LT(shared, alpha - 0.005) << "the two forms can be told apart";
    expect_near(measured("rejection", target, draft, {{0, 1}}), alpha, "rejection");
    expect_near(measured("block", target, draft, {{0, 1}}), alpha, "block");
    expect_near(measured("coupled", target, draft, {{0, 1}}), shared, "coupled");
  }
}

TEST(Acceptance, OfDeterministicDraftsIsTheirShareOfTheTarget) {
  const ToyLogits target(5, 77), draft(5, 78);
  const Laws l = laws(target, draft);
  for (const std::string rule : {"rejection", "block", "coupled"}) {
    expect_near(measured(rule, target, draft, {{1, 0}}), l.p[0], rule);
    expect_near(measured(rule, target, draft, {{3, 0}}), l.p[0] + l.p[1] + l.p[2], rule);
  }
}

TEST(Acceptance, OfTheBlockPapersToyIsElevenNinths) {
  const ToyLogits target = ToyLogits::constant({1.0 / 3, 2.0 / 3}), draft = ToyLogits::constant({2.0 / 3, 1.0 / 3});
  const Shape chain{{0, 1}, {0, 1}};
  expect_near(measured("rejection", target, draft, chain), 10.0 / 9, "rejection");
  expect_near(measured("block", target, draft, chain), 11.0 / 9, "block");
  // sum_i 1 / sum_j max(p_j/p_i, q_j/q_i) = 1 / 3 + 1 / 3 at each of the two positions.
  expect_near(measured("coupled", target, draft, chain), 2.0 / 3 + 4.0 / 9, "coupled");
}

TEST(Typical, ThresholdIsTheSmallerOfFloorAndEntropyMeasure) {
  const Distribution sure = testing::support_of({1});
  EXPECT_EQ(typical_threshold(sure), kTypicalEpsilon);
  // H = ln 2: delta / 2 is still above the floor. H = ln 8: delta / 8 is below.
  EXPECT_DOUBLE_EQ(typical_threshold(testing::support_of({0.5, 0.5})), kTypicalEpsilon);
  EXPECT_NEAR(typical_threshold(testing::support_of(std::vector<double>(8, 0.125))), kTypicalDelta / 8, 1e-15);
}

TEST(Typical, AcceptsWhatIsPlausibleAndEndsAtTheFirstOfTheDeepest) {
  //      0
  //    1   2      p = (.5, .42, .08) everywhere: token 2 is below the floor
  //   3   4 5
  TokenTree tree(0);
  for (const auto& [parent, token] : std::vector<std::pair<int, TokenId>>{{0, 1}, {0, 0}, {1, 2}, {2, 1}, {2, 0}}) {
    tree.add(parent, token, ChildKind::deterministic, DraftSource::other);
  }
  const Distribution law = testing::support_of({0.5, 0.42, 0.08});
  Distribution p, best;
  Verdict verdict;
  const Distribution& next = follow_typical(tree, verdict, p, best, [&](int, Distribution& out) { out = law; });
  EXPECT_EQ(std::vector<int>(verdict.path().begin(), verdict.path().end()), (std::vector<int>{0, 2, 4}));
  EXPECT_EQ(verdict.tested, std::uint64_t{0b111110});
  EXPECT_EQ(next.tokens, law.tokens);
}

// p = (.6, .4): a draft that always proposes token 1 is always accepted, so the text is not the target's.
TEST(Typical, DoesChangeTheDistribution) {
  const ToyLogits target = ToyLogits::constant({0.6, 0.4}), draft = ToyLogits::constant({0.001, 0.999});
  EXPECT_GT(measured("typical", target, draft, {{0, 1}}).value, 0.99);
  EXPECT_LT(measured("rejection", target, draft, {{0, 1}}).value, 0.5);
}

}  // namespace
}  // namespace tandem
