// Bias and penalties: worked values, the window, their place in the chain, and agreement with the plain chain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "src/base/error.h"
#include "src/sample/sampler.h"
#include "tests/sample/allocation_counter.h"
#include "tests/sample/plain_chain.h"

namespace tandem {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

Context context_of(const std::vector<TokenId>& tokens) {
  Context context;
  context.push(tokens);
  return context;
}

Distribution sample(const std::vector<float>& logits, const SamplingOptions& options,
                    const std::vector<TokenId>& context, TokenMask mask = {}) {
  Sampler sampler(options, Noise{}, std::move(mask));
  Distribution out;
  sampler.distribution(logits, context_of(context), out);
  return out;
}

// Logits of every token after bias and penalties, as the adjuster changes them.
std::vector<double> adjusted(const std::vector<float>& logits, const SamplingOptions& options,
                             const std::vector<TokenId>& context) {
  std::vector<double> all(logits.begin(), logits.end());
  LogitAdjuster adjuster(options);
  for (const AdjustedLogit& changed : adjuster.adjust(logits, context, {})) {
    all[static_cast<std::size_t>(changed.token)] = changed.logit;
  }
  return all;
}

SamplingOptions unfiltered(double temperature = 1) { return {temperature, 0, 1, 0}; }

TEST(Penalties, RepetitionLowersASeenTokenOfEitherSign) {  // B17
  SamplingOptions options = unfiltered();
  options.repetition_penalty = 1.5;
  const std::vector<float> logits{-2, 2, -2, 2, 0};
  EXPECT_THAT(adjusted(logits, options, {0, 1, 4}), ElementsAre(-3, DoubleEq(4.0 / 3), -2, 2, 0));
  const Distribution p = sample(logits, options, {0, 1});
  EXPECT_LT(p[0], p[2]);
  EXPECT_LT(p[1], p[3]);
  options.repetition_penalty = 0.5;  // below 1 it favours what was seen
  EXPECT_THAT(adjusted(logits, options, {0, 1}), ElementsAre(-1, 4, -2, 2, 0));
}

TEST(Penalties, PresenceCountsOnceAndFrequencyEachTime) {
  SamplingOptions options = unfiltered();
  options.presence_penalty = 0.5;
  EXPECT_THAT(adjusted({1, 1, 1}, options, {0, 0, 2}), ElementsAre(0.5, 1, 0.5));
  options.presence_penalty = 0;
  options.frequency_penalty = 0.25;
  EXPECT_THAT(adjusted({1, 1, 1}, options, {0, 0, 2}), ElementsAre(0.5, 1, 0.75));
}

TEST(Penalties, GiveTheWorkedDistribution) {
  SamplingOptions options = unfiltered();
  options.repetition_penalty = 2;
  options.presence_penalty = 0.5;
  options.frequency_penalty = 0.25;
  // 2/2 - 0.5 - 2 * 0.25 = 0, 1, -1 * 2 - 0.5 - 0.25 = -2.75, 0; the exponentials 1, 2.718282, 0.063928, 1 sum to
  // 4.782210.
  EXPECT_THAT(adjusted({2, 1, -1, 0}, options, {0, 2, 0}), ElementsAre(0, 1, -2.75, 0));
  EXPECT_THAT(sample({2, 1, -1, 0}, options, {0, 2, 0}).probabilities,
              ElementsAre(DoubleNear(0.20911, 5e-6), DoubleNear(0.56842, 5e-6), DoubleNear(0.01337, 5e-6),
                          DoubleNear(0.20911, 5e-6)));
}

TEST(Penalties, BiasComesFirst) {
  SamplingOptions options = unfiltered();
  options.logit_bias = {{1, 3.0}, {0, -3.0}, {1, 1.0}};
  EXPECT_THAT(adjusted({1, -2, 5}, options, {}), ElementsAre(-2, 2, 5));
  options.repetition_penalty = 2;  // divides the biased logit, whose sign has changed
  EXPECT_THAT(adjusted({1, -2, 5}, options, {0, 1}), ElementsAre(-4, 1, 5));
}

TEST(Penalties, ComeBeforeTemperatureAndFilters) {
  SamplingOptions options = unfiltered(0.5);
  options.presence_penalty = 1;
  const Distribution p = sample({2, 2}, options, {0});  // 1 and 2 over 0.5: odds of e^2
  EXPECT_NEAR(p[1] / p[0], std::exp(2.0), 1e-12);
  options.top_k = 1;
  EXPECT_THAT(sample({3, 2.5f}, options, {0}).tokens, ElementsAre(1));
  options.top_k = 0;
  options.top_p = 0.5;
  EXPECT_THAT(sample({3, 2.5f}, options, {0}).tokens, ElementsAre(1));
  options.top_p = 1;
  options.min_p = 0.9;
  EXPECT_THAT(sample({3, 2.5f}, options, {0}).tokens, ElementsAre(1));
}

TEST(Penalties, TemperatureZeroTakesTheBestAfterThem) {
  SamplingOptions options = unfiltered(0);
  options.presence_penalty = 1;
  EXPECT_THAT(sample({3, 2.5f, 2}, options, {0}).tokens, ElementsAre(1));
  EXPECT_THAT(sample({3, 2, 2}, options, {0}).tokens, ElementsAre(0));  // a tie goes to the lowest id, changed or not
  EXPECT_THAT(sample({2, 3, 2}, options, {1}).tokens, ElementsAre(0));
  options = unfiltered(0);
  options.logit_bias = {{2, 1.5}};
  EXPECT_THAT(sample({3, 2.5f, 2}, options, {}).tokens, ElementsAre(2));
}

TEST(Penalties, SeeTheLastTokensOfTheContextAlone) {
  SamplingOptions options = unfiltered();
  options.presence_penalty = 1;
  options.penalty_window = 2;
  EXPECT_THAT(adjusted({5, 5, 5}, options, {0, 1, 2}), ElementsAre(5, 4, 4));
  options.penalty_window = 3;
  EXPECT_THAT(adjusted({5, 5, 5}, options, {0, 1, 2}), ElementsAre(4, 4, 4));
  options.penalty_window = std::numeric_limits<int>::max();
  EXPECT_THAT(adjusted({5, 5, 5}, options, {0, 1, 2}), ElementsAre(4, 4, 4));
  EXPECT_THAT(adjusted({5, 5, 5}, options, {}), ElementsAre(5, 5, 5));
  options.penalty_window = 0;
  EXPECT_THAT(adjusted({5, 5, 5}, options, {0, 1, 2}), ElementsAre(5, 5, 5));
}

TEST(Penalties, NeutralValuesChangeNoBitAndTouchNothing) {  // B17
  SamplingOptions neutral{0.7, 40, 0.95, 0.01};
  neutral.logit_bias = {{3, 0.0}};
  LogitAdjuster adjuster(neutral);
  const std::vector<float> logits = testing::random_logits(500, 3, 3);
  const std::vector<TokenId> context{1, 2, 3, 2};
  EXPECT_TRUE(adjuster.adjust(logits, context, {}).empty());
  const Distribution with = sample(logits, neutral, context), without = sample(logits, {0.7, 40, 0.95, 0.01}, {});
  EXPECT_EQ(with.tokens, without.tokens);
  EXPECT_EQ(with.probabilities, without.probabilities);
}

TEST(Penalties, BiasBansAndNeverUnbans) {
  SamplingOptions options = unfiltered();
  options.logit_bias = {{0, -kInf}, {2, 100.0}, {3, 100.0}};
  const float infinity = std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0}) {
    for (const int k : {0, 2}) {
      options.temperature = temperature;
      options.top_k = k;
      const Distribution p =
          sample({9, 1, 2, -infinity}, options, {}, TokenMask(std::vector<bool>{true, true, false, true}));
      EXPECT_THAT(p.tokens, ElementsAre(1)) << temperature << ' ' << k;
    }
  }
  EXPECT_THAT(sample({infinity, 1, 0, 0}, options, {}).tokens, ElementsAre(2, 3));  // inf - inf is never chosen
  options.logit_bias = {{0, -kInf}, {1, -kInf}};
  EXPECT_THROW(sample({1, 2}, options, {}), Error);
}

TEST(Penalties, IdsWithoutARowAreIgnored) {  // a draft may have fewer rows than the target
  SamplingOptions options = unfiltered();
  options.logit_bias = {{1, 1.0}, {2, 5.0}, {1000000, 5.0}};
  options.presence_penalty = 1;
  EXPECT_THAT(adjusted({1, 1}, options, {0, 7, 3}), ElementsAre(0, 2));
}

TEST(Penalties, AgreeWithThePlainChain) {
  std::mt19937_64 random(5);
  const auto real = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  for (int round = 0; round < 600; ++round) {
    const std::size_t size = round % 3 == 0 ? 5000 : 1 + random() % 300;
    const std::vector<float> logits = testing::random_logits(size, random(), real(0.1, 6));
    SamplingOptions options{real(0.2, 2), 0, 1, 0};
    if (random() % 2 == 0) options.top_k = 1 + static_cast<int>(random() % 60);
    if (random() % 2 == 0) options.top_p = real(0, 1);
    if (random() % 2 == 0) options.min_p = real(0, 0.3);
    if (random() % 2 == 0) options.repetition_penalty = real(0.5, 3);
    if (random() % 2 == 0) options.presence_penalty = real(-2, 2);
    if (random() % 2 == 0) options.frequency_penalty = real(-2, 2);
    options.penalty_window = static_cast<int>(random() % 100);
    for (std::size_t i = random() % 20; i > 0; --i) {
      options.logit_bias.emplace_back(static_cast<TokenId>(random() % size), real(-5, 5));
    }
    std::vector<TokenId> context(random() % 120);
    for (TokenId& token : context) token = static_cast<TokenId>(random() % std::min<std::size_t>(size, 50));

    const std::vector<double> changed = testing::penalised(logits, options, context);
    const Distribution got = sample(logits, options, context), want = testing::expected(changed, options);
    ASSERT_EQ(got.tokens, want.tokens) << round;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got.probabilities[i], want.probabilities[i], 1e-12 * want.probabilities[i]) << round;
    }
    options.temperature = 0;
    const auto best = std::max_element(changed.begin(), changed.end()) - changed.begin();
    ASSERT_THAT(sample(logits, options, context).tokens, ElementsAre(best)) << round;
  }
}

TEST(Penalties, AllocateNothingOnceWarm) {
  const std::vector<float> logits = testing::random_logits(5000, 2, 3);
  SamplingOptions options;
  options.repetition_penalty = 1.1;
  options.frequency_penalty = 0.1;
  options.logit_bias = {{3, 1.0}, {4999, -kInf}};
  const Context first = context_of({1, 2, 3, 4}), second = context_of({9, 9, 8, 1});
  for (const double temperature : {0.0, 0.7}) {
    options.temperature = temperature;
    Sampler sampler(options, Noise{}, {});
    Distribution out;
    sampler.distribution(logits, first, out);
    const long before = testing::allocations();
    sampler.distribution(logits, second, out);
    sampler.distribution(logits, first, out);
    EXPECT_EQ(testing::allocations(), before);
  }
}

TEST(TokenMask, HoldsTheUsableIdsAsRuns) {
  const TokenMask mask(std::vector<bool>{false, true, true, false, true, false});
  std::vector<std::pair<TokenId, TokenId>> runs;
  for (const TokenRun& run : mask.runs()) runs.emplace_back(run.begin, run.end);
  EXPECT_THAT(runs, ElementsAre(std::pair(1, 3), std::pair(4, 5)));
  for (const TokenId id : {1, 2, 4}) EXPECT_TRUE(mask.allows(id)) << id;
  for (const TokenId id : {0, 3, 5, 6, 1000}) EXPECT_FALSE(mask.allows(id)) << id;
  EXPECT_FALSE(TokenMask(std::vector<bool>{}).allows(0));
}

}  // namespace
}  // namespace tandem
