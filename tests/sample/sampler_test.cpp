#include "src/sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "tests/sample/allocation_counter.h"
#include "tests/sample/chi_square.h"
#include "tests/sample/plain_chain.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::expected;
using ::testing::HasSubstr;
using testing::random_logits;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Distribution sample(const std::vector<float>& logits, SamplingOptions options, TokenMask mask = {}) {
  Sampler sampler(options, Noise{}, std::move(mask));
  Distribution out;
  sampler.distribution(logits, Context{}, out);
  return out;
}

SamplingOptions plain(double temperature) { return {temperature, 0, 1.0, 0.0}; }

TEST(Sampler, GivesTheDesignsWorkedValue) {
  const Distribution p = sample({3, 2.5f, 1, -1, -2}, {0.8, 0, 0.9, 0});
  EXPECT_THAT(p.tokens, ElementsAre(0, 1));
  EXPECT_NEAR(p.probabilities[0], 0.6514, 5e-5);
  EXPECT_NEAR(p.probabilities[1], 0.3486, 5e-5);
}

// B19: temperature comes before top-p; the other order would keep {0, 1}.
TEST(Sampler, AppliesTemperatureBeforeTopP) {
  EXPECT_THAT(sample({1.5f, 1, 0}, {0.25, 0, 0.8, 0}).tokens, ElementsAre(0));
}

// Top-k first: p of the two survivors is (.73, .27), so top-p .7 cuts one more; top-p first would have kept three.
TEST(Sampler, AppliesTopKBeforeTopPAndTopPBeforeMinP) {
  EXPECT_THAT(sample({2, 1, 1, 1, 1}, {1, 2, 0.7, 0}).tokens, ElementsAre(0));
  EXPECT_THAT(sample({2, 1, 1, 1, 1}, {1, 0, 0.7, 0}).tokens, ElementsAre(0, 1, 2));
  EXPECT_THAT(sample({2, 1.9f, 0, 0, 0}, {1, 0, 0.99, 0.5}).tokens, ElementsAre(0, 1));
}

// The list that a sort of the adjusted row gives, with equal logits, a mask, a bias and penalties.
TEST(Sampler, BestTokensAreTheFirstOfTheSortedRow) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const std::size_t size = 1 + seed * 37 % 900;
    std::vector<float> logits = random_logits(size, seed, 2);
    for (std::size_t i = 0; i < size; ++i) {
      if (seed % 3 == 0) logits[i] = std::round(logits[i]);  // many equal ones
      if (i % 11 == 3) logits[i] = kNan;
      if (i % 13 == 4) logits[i] = -kInf;
    }
    logits[0] = 0.5f;
    std::vector<bool> usable(size, true);
    for (std::size_t i = 5; i < size; i += 7) usable[i] = false;
    SamplingOptions options{.temperature = 0, .repetition_penalty = 1.5, .frequency_penalty = 0.25};
    options.logit_bias = {{0, 0.25}, {static_cast<TokenId>(size - 1), 3}};
    Context context;
    for (std::size_t i = 0; i < 20; ++i) context.push(static_cast<TokenId>((seed * 31 + i * i) % size));
    Sampler sampler(options, Noise{}, TokenMask(usable));

    LogitAdjuster adjuster(options);
    std::vector<RankedToken> expected;
    for (std::size_t i = 0; i < size; ++i) expected.push_back({static_cast<TokenId>(i), logits[i]});
    for (const AdjustedLogit& changed : adjuster.adjust(logits, context.tokens(), TokenMask(usable))) {
      expected[static_cast<std::size_t>(changed.token)].value = changed.logit;
    }
    std::erase_if(expected, [&](const RankedToken& token) {
      return !usable[static_cast<std::size_t>(token.token)] || !(token.value > -kInf);
    });
    std::stable_sort(expected.begin(), expected.end(),
                     [](const RankedToken& a, const RankedToken& b) { return a.value > b.value; });
    for (const std::size_t wanted : {1, 2, 4, 9}) {
      std::vector<RankedToken> best(wanted);
      const int count = sampler.best_tokens(logits, context, best);
      ASSERT_EQ(count, static_cast<int>(std::min(wanted, expected.size()))) << "seed " << seed;
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(best[i].token, expected[i].token) << "seed " << seed << ", rank " << i;
        EXPECT_EQ(best[i].value, expected[i].value) << "seed " << seed << ", rank " << i;
      }
      Distribution greedy;
      sampler.distribution(logits, context, greedy);
      EXPECT_EQ(best.front().token, greedy.tokens.front());
    }
  }
  std::vector<RankedToken> best(2);
  EXPECT_THROW(Sampler(plain(0), Noise{}, {}).best_tokens(std::vector<float>{kNan, -kInf}, Context{}, best), Error);
}

TEST(Sampler, EqualsTheSortedChain) {
  int checked = 0;
  for (const std::size_t size : {1, 2, 7, 64, 65, 1000, 5000}) {
    for (const double scale : {0.0, 0.1, 1.0, 8.0}) {
      for (const int steps : {0, 2}) {
        const std::vector<float> logits = random_logits(size, 100 + size, scale, steps);
        for (const int k : {0, 1, 2, 31, 32, 40, 999, 1000, 4999, 5000, 6000}) {
          for (const double p : {0.0, 0.3, 0.95, 1.0}) {
            for (const double m : {0.0, 0.1, 1.0}) {
              const SamplingOptions options{0.7, k, p, m};
              const Distribution got = sample(logits, options),
                                 want = expected({logits.begin(), logits.end()}, options);
              ASSERT_EQ(got.tokens, want.tokens)
                  << "size " << size << " scale " << scale << " k " << k << " p " << p << " m " << m;
              for (std::size_t i = 0; i < got.size(); ++i) {
                ASSERT_NEAR(got.probabilities[i], want.probabilities[i], 1e-13 * want.probabilities[i]);
              }
              ++checked;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(checked, 7 * 4 * 2 * 11 * 4 * 3);
}

TEST(Sampler, KeepsTheLowestIdsAmongTies) {
  const std::vector<float> flat(10, 1.0f);
  EXPECT_THAT(sample(flat, {1, 3, 1, 0}).tokens, ElementsAre(0, 1, 2));
  EXPECT_THAT(sample(flat, {1, 0, 0.25, 0}).tokens, ElementsAre(0, 1, 2));
  EXPECT_THAT(sample({1, 3, 2, 3, 3}, {1, 2, 1, 0}).tokens, ElementsAre(1, 3));
  EXPECT_THAT(sample({1, 3, 2, 3, 3}, {0, 0, 1, 0}).tokens, ElementsAre(1));
}

TEST(Sampler, TakesTheEdgesOfEveryFilter) {
  const std::vector<float> logits{0, 2, 1, 2};
  EXPECT_THAT(sample(logits, {1, 0, 0.0, 0}).tokens, ElementsAre(1));
  EXPECT_EQ(sample(logits, {1, 0, 1.0, 0}).size(), 4u);
  EXPECT_EQ(sample(logits, {1, 0, std::nextafter(1.0, 0.0), 0}).size(), 4u);
  EXPECT_THAT(sample(logits, {1, 1, 1, 0}).tokens, ElementsAre(1));
  for (const int k : {0, 4, 5, std::numeric_limits<int>::max()}) EXPECT_EQ(sample(logits, {1, k, 1, 0}).size(), 4u);
  EXPECT_THAT(sample(logits, {1, 0, 1, 1.0}).tokens, ElementsAre(1, 3));
  EXPECT_THAT(sample(logits, {1, 0, 1, std::exp(-1.0)}).tokens, ElementsAre(1, 2, 3));
}

// B14, with a masked entry.
TEST(Sampler, SurvivesTinyAndHugeTemperatures) {
  for (const double temperature : {0.0, 1e-300, 1e-6, 1e-4}) {
    const Distribution p = sample({90, 89, -50, -kInf}, plain(temperature));
    EXPECT_THAT(p.tokens, ElementsAre(0)) << temperature;
    EXPECT_THAT(p.probabilities, ElementsAre(1.0)) << temperature;
  }
  const Distribution flat = sample({90, 89, -50, -kInf}, plain(1e300));
  EXPECT_THAT(flat.probabilities, ElementsAre(1.0 / 3, 1.0 / 3, 1.0 / 3));
  const float most = std::numeric_limits<float>::max();
  EXPECT_THAT(sample({most, -most, 0}, plain(1)).tokens, ElementsAre(0));
}

TEST(Sampler, NeverChoosesNanOrMinusInfinity) {
  for (const double temperature : {0.0, 1.0}) {
    for (const int k : {0, 2, 4}) {
      const Distribution p = sample({kNan, 1, -kInf, kNan, 1}, {temperature, k, 0.99, 0});
      EXPECT_EQ(p[0] + p[2] + p[3], 0) << temperature;
      EXPECT_NEAR(std::accumulate(p.probabilities.begin(), p.probabilities.end(), 0.0), 1, 1e-15);
    }
  }
}

TEST(Sampler, SharesAllMassAmongPlusInfinities) {
  for (const int k : {0, 3}) {
    const Distribution p = sample({kInf, 5, kNan, kInf, -kInf}, {1, k, 1, 0});
    EXPECT_THAT(p.tokens, ElementsAre(0, 3));
    EXPECT_THAT(p.probabilities, ElementsAre(0.5, 0.5));
  }
  EXPECT_THAT(sample({5, kInf, kInf}, {1, 1, 1, 0}).tokens, ElementsAre(1));
  EXPECT_THAT(sample({5, kInf, kInf}, {0, 0, 1, 0}).tokens, ElementsAre(1));
}

TEST(Sampler, RefusesARowWithoutAUsableValueNamingThePosition) {
  Context context;
  context.push(std::vector<TokenId>{1, 2, 3});
  context.set_dropped(14);
  const std::vector<std::vector<float>> rows{{kNan, kNan}, {-kInf, -kInf}, {kNan, -kInf}, {}};
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({temperature, 1, 0.9, 0.1}, Noise{}, {});
    for (const std::vector<float>& row : rows) {
      Distribution out;
      try {
        sampler.distribution(row, context, out);
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::numeric);
        EXPECT_THAT(error.what(), HasSubstr("position 17"));
      }
    }
  }
  EXPECT_THROW(sample({1, 2}, plain(1), TokenMask(std::vector<bool>{false, false})), Error);
}

TEST(Sampler, MasksUnusedAndPaddingIds) {
  const std::vector<float> logits{1, 9, 2, 8, 7};
  for (const double temperature : {0.0, 1.0}) {
    for (const int k : {0, 2}) {
      const Distribution p =
          sample(logits, {temperature, k, 1, 0}, TokenMask(std::vector<bool>{true, false, true, true}));
      EXPECT_EQ(p[1] + p[4], 0);
      EXPECT_GT(p[3], 0);
    }
  }
  const TokenMask all_usable(std::vector<bool>(3, true));
  EXPECT_TRUE(all_usable.allows(2));
  EXPECT_FALSE(all_usable.allows(3));
  EXPECT_TRUE(TokenMask{}.allows(1000000));
}

TEST(Sampler, RefusesOptionsOutsideTheirRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<SamplingOptions, std::string>> cases{
      {{-0.1, 0, 1, 0}, "temperature"},
      {{nan, 0, 1, 0}, "temperature"},
      {{HUGE_VAL, 0, 1, 0}, "temperature"},
      {{1, -1, 1, 0}, "top_k"},
      {{1, 0, 1.01, 0}, "top_p"},
      {{1, 0, -0.01, 0}, "top_p"},
      {{1, 0, nan, 0}, "top_p"},
      {{1, 0, 1, 1.01}, "min_p"},
      {{1, 0, 1, -1}, "min_p"},
      {{.repetition_penalty = 0}, "repetition_penalty"},
      {{.repetition_penalty = HUGE_VAL}, "repetition_penalty"},
      {{.presence_penalty = nan}, "presence_penalty"},
      {{.frequency_penalty = -HUGE_VAL}, "frequency_penalty"},
      {{.penalty_window = -1}, "penalty_window"},
      {{.logit_bias = {{-1, 5.0}}}, "logit_bias"},
      {{.logit_bias = {{1, HUGE_VAL}}}, "logit_bias"},
      {{.logit_bias = {{1, nan}}}, "logit_bias"}};
  for (const auto& [options, name] : cases) {
    try {
      const Sampler sampler(options, Noise{}, {});
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

// A pass that picked says which token, and nothing else of the row is looked at.
TEST(Sampler, APickedRowHasAllItsMassOnThePick) {
  Sampler sampler({}, Noise{}, {});
  const std::vector<float> rows{1, 2, 3, 9, 2, 1};
  const std::vector<TokenId> picks{2, -1};
  Distribution p;
  sampler.distribution({.data = rows, .vocab = 3, .picks = picks}, 0, Context{}, p);
  EXPECT_THAT(p.tokens, ElementsAre(2));
  EXPECT_THAT(p.probabilities, ElementsAre(1.0));
  sampler.distribution({.data = rows, .vocab = 3, .picks = picks}, 1, Context{}, p);
  Distribution whole;
  sampler.distribution(std::span(rows).subspan(3), Context{}, whole);
  EXPECT_EQ(p.tokens, whole.tokens);
  EXPECT_EQ(p.probabilities, whole.probabilities);
}

TEST(Sampler, LeavesPickingToAPassOnlyWhereRowsStayAsTheyAre) {
  const SamplingOptions options{0.5, 7, 0.9, 0.1};
  const std::optional<Picking> picking = Sampler(options, Noise{3, 4}, {}).picking();
  ASSERT_TRUE(picking);
  EXPECT_EQ(picking->temperature, 0.5);
  EXPECT_EQ(picking->top_k, 7);
  EXPECT_EQ(picking->top_p, 0.9);
  EXPECT_EQ(picking->min_p, 0.1);
  EXPECT_EQ(picking->noise.seed, 3u);
  EXPECT_EQ(picking->noise.stream, 4u);
  SamplingOptions biased = options, repeated = options, present = options, frequent = options, neutral = options;
  biased.logit_bias = {{1, 0.5}};
  repeated.repetition_penalty = 1.1;
  present.presence_penalty = 0.1;
  frequent.frequency_penalty = 0.1;
  neutral.logit_bias = {{1, 0.0}};
  for (const SamplingOptions& adjusting : {biased, repeated, present, frequent}) {
    EXPECT_FALSE(Sampler(adjusting, Noise{}, {}).picking());
  }
  EXPECT_TRUE(Sampler(neutral, Noise{}, {}).picking());
}

TEST(TokenMask, HasABitForEachUsableId) {
  std::vector<bool> usable(70, true);
  usable[0] = usable[33] = usable[69] = false;
  EXPECT_THAT(TokenMask(usable).bits(100), ElementsAre(0xfffffffeu, 0xfffffffdu, 0x1fu, 0u));
  EXPECT_THAT(TokenMask().bits(33), ElementsAre(0xffffffffu, 1u));
}

TEST(Sampler, AllocatesNothingOnceWarm) {
  const std::vector<float> peaked = random_logits(20000, 1, 4), flat = random_logits(20000, 2, 0.01);
  for (const SamplingOptions& options :
       {SamplingOptions{0, 40, 0.95, 0}, SamplingOptions{1, 40, 0.95, 0}, SamplingOptions{1, 0, 0.95, 0.01},
        SamplingOptions{1, 0, 1, 0}, SamplingOptions{1, 15000, 0.5, 0}}) {
    Sampler sampler(options, Noise{3, 0}, TokenMask(std::vector<bool>(19990, true)));
    Distribution out;
    sampler.distribution(peaked, Context{}, out);
    const long before = testing::allocations();
    for (const auto* logits : {&flat, &peaked}) {
      sampler.distribution(*logits, Context{}, out);
      sampler.draw(out, 5, 1, DrawPurpose::draft);
      sampler.draw_with_noise(out, 6);
    }
    EXPECT_EQ(testing::allocations(), before) << "top_k " << options.top_k << " top_p " << options.top_p;
  }
}

TEST(Draw, WithNoiseIsTheArgmaxOfLogProbabilityPlusGumbel) {
  const Noise noise{99, 2};
  Sampler sampler(plain(1), noise, {});
  Distribution p;
  for (std::uint32_t position = 0; position < 300; ++position) {
    sampler.distribution(random_logits(500, position, 3), Context{}, p);
    std::size_t best = 0;
    const auto score = [&](std::size_t i) {
      return std::log(p.probabilities[i]) + noise.gumbel(position, p.tokens[i]);
    };
    for (std::size_t i = 1; i < p.size(); ++i) {
      if (score(i) > score(best)) best = i;
    }
    ASSERT_EQ(sampler.draw_with_noise(p, position), p.tokens[best]) << position;
  }
}

TEST(Draw, FollowsTheDistribution) {
  constexpr int kDraws = 100000;
  const std::vector<float> logits{1, 0, -1, 2, 0.5f, -kInf, -4, 1};
  const Distribution p = sample(logits, plain(1));
  std::vector<double> law(8), by_noise(8), by_position(8), by_node(8), by_seed(8);
  for (std::size_t i = 0; i < p.size(); ++i) law[p.tokens[i]] = p.probabilities[i];
  const Sampler sampler(plain(1), Noise{2024, 0}, {});
  for (int i = 0; i < kDraws; ++i) {
    ++by_noise[sampler.draw_with_noise(p, i)];
    ++by_position[sampler.draw(p, i, 3, DrawPurpose::correction)];
    ++by_node[sampler.draw(p, i / 64, i % 64, DrawPurpose::draft)];
    ++by_seed[Sampler(plain(1), Noise{static_cast<std::uint64_t>(i) << 20, 0}, {}).draw_with_noise(p, 17)];
  }
  for (const auto* counts : {&by_noise, &by_position, &by_node, &by_seed}) {
    const auto result = testing::chi_square(*counts, law);
    EXPECT_LT(result.statistic, result.limit);
  }
  std::swap(law[0], law[1]);
  EXPECT_FALSE(testing::chi_square(by_noise, law).fits()) << "the check cannot fail";
}

TEST(Draw, UsesNoRandomNumberWhereThereIsNoChoice) {
  const Distribution p = sample({1, 5, 2}, plain(0));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Sampler sampler(plain(0), Noise{seed, 0}, {});
    EXPECT_EQ(sampler.draw_with_noise(p, 3), 1);
    EXPECT_EQ(sampler.draw(p, 3, 0, DrawPurpose::correction), 1);
  }
}

TEST(Draw, EndsOnTheLastTokenWhenRoundingLeavesTheSumShort) {
  Distribution p;
  p.add(4, 1e-12);
  p.add(9, 1e-12);
  const Sampler sampler(plain(1), Noise{}, {});
  for (std::uint32_t position = 0; position < 100; ++position) {
    EXPECT_EQ(sampler.draw(p, position, 0, DrawPurpose::draft), 9);
  }
}

// The size of Qwen's vocabulary; the filters must agree with the sort there too.
TEST(Sampler, HandlesAFullVocabulary) {
  const std::vector<float> logits = random_logits(151936, 5, 2);
  for (const SamplingOptions& options : {plain(1), SamplingOptions{1, 40, 0.95, 0}, SamplingOptions{1, 0, 0.95, 0},
                                         SamplingOptions{1, 50000, 0.9, 0.001}}) {
    EXPECT_EQ(sample(logits, options).tokens, expected({logits.begin(), logits.end()}, options).tokens);
  }
}

}  // namespace
}  // namespace tandem
