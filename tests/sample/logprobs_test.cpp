// Log-probabilities and the exponentials below them.
#include "src/sample/logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/sample/exponential.h"
#include "tests/sample/plain_chain.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<TokenId> ids(const TokenLogprobs& logprobs) {
  std::vector<TokenId> ids;
  for (const TokenLogprob& token : logprobs.top()) ids.push_back(token.id);
  return ids;
}

TEST(Exponentials, AreWithinOneUlpAndExactAtTheEnds) {
  std::vector<double> values;
  for (int i = 0; i < 200003; ++i) values.push_back(-i * 0.00351);
  std::vector<double> results = values;
  exponentials(results);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double want = std::exp(values[i]);
    const double ulp = std::nextafter(want, 2) - want;
    ASSERT_LE(std::abs(results[i] - want), ulp) << values[i];
  }
  std::vector<double> ends{0.0,    -0.0,      -707.5,       -1e6,
                           -1e300, -HUGE_VAL, std::nan(""), -std::numeric_limits<double>::min()};
  exponentials(ends);
  EXPECT_THAT(ends, ElementsAre(1, 1, 0, 0, 0, 0, 0, 1));
}

TEST(Exponentials, DependOnTheirValueAlone) {  // not on the place in the block, nor on its length
  for (const double x : {-0.3, -1.0, -17.25, -400.0}) {
    std::vector<double> one{x}, many(37, x);
    exponentials(one);
    exponentials(many);
    for (const double value : many) EXPECT_EQ(value, one[0]);
  }
}

TEST(Logprobs, GiveTheWorkedValues) {
  // log(e^1 + e^2 + e^3) = 3.4076059644
  const std::vector<float> logits{1, 2, 3};
  EXPECT_NEAR(log_sum_exp(logits), 3.4076059644443806, 1e-15 * 4);
  const TokenLogprobs p = token_logprobs(logits, 0, 2, {});
  EXPECT_EQ(p.drawn.id, 0);
  EXPECT_NEAR(p.drawn.logprob, -2.4076059644443806, 1e-15);
  EXPECT_THAT(ids(p), ElementsAre(2, 1));
  EXPECT_NEAR(p.best[0].logprob, -0.4076059644443806, 1e-15);
  EXPECT_NEAR(p.best[1].logprob, -1.4076059644443806, 1e-15);
}

TEST(Logprobs, ListTheBestUsableIdsWithTheLowestFirstAmongTies) {
  EXPECT_THAT(ids(token_logprobs(std::vector<float>{1, 3, 2, 3, 3}, 0, 3, {})), ElementsAre(1, 3, 4));
  EXPECT_THAT(ids(token_logprobs(std::vector<float>{1, 3, 2, 3, 3}, 0, 2, {})), ElementsAre(1, 3));
  EXPECT_THAT(ids(token_logprobs(std::vector<float>{1, 2}, 0, 20, {})), ElementsAre(1, 0));  // fewer than asked for
  const std::vector<float> row{1, 9, 2, 8};
  const TokenLogprobs masked = token_logprobs(row, 0, 3, TokenMask(std::vector<bool>{true, false, true}));
  EXPECT_THAT(ids(masked), ElementsAre(2, 0));
  EXPECT_EQ(masked.best[1].logprob, 1 - log_sum_exp(row));  // of the whole row, as `tandem score`
  EXPECT_EQ(masked.drawn.logprob, masked.best[1].logprob);
}

TEST(Logprobs, SurviveOddRows) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>{kNan, 1, -kInf, 1}), 1 + std::log(2.0), 1e-15);
  EXPECT_THAT(ids(token_logprobs(std::vector<float>{kNan, 1, -kInf, 2}, 1, 4, {})), ElementsAre(3, 1));
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(log_sum_exp(std::vector<float>{most, -most}), most);
  EXPECT_EQ(log_sum_exp(std::vector<float>{kInf, 1}), kInf);
  EXPECT_EQ(log_sum_exp(std::vector<float>{}), -kInf);
}

TEST(Logprobs, AgreeWithASortOfAWholeVocabulary) {
  const std::vector<float> logits = testing::random_logits(151936, 8, 2, 50);  // steps make ties
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - logits[order[0]]);
  const double normaliser = logits[order[0]] + std::log(total);
  const TokenLogprobs p = token_logprobs(logits, 77, kMaxLogprobs, {});
  EXPECT_EQ(ids(p), std::vector<TokenId>(order.begin(), order.begin() + kMaxLogprobs));
  for (const TokenLogprob& token : p.top()) EXPECT_NEAR(token.logprob, logits[token.id] - normaliser, 1e-12);
  EXPECT_NEAR(p.drawn.logprob, logits[77] - normaliser, 1e-12);
}

}  // namespace
}  // namespace tandem
