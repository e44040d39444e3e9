// Scores and row costs on a tiny model, and what is read from its file.
#include "src/engine/scoring.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/error.h"
#include "src/engine/row_costs.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

class ScoringTest : public ::testing::Test {
 protected:
  ScoringTest() : model_(open_model(write_tiny_model(tiny_.folder, "scored.gguf", {}))) {}

  TinyModel tiny_;
  ModelFile model_;
};

TEST_F(ScoringTest, LogProbabilitiesAreThoseOfASoftmaxOneTokenAtATime) {
  std::mt19937_64 random(1);
  const std::vector<TokenId> ids = random_tokens(random, 70);  // more than one pass
  int told = 0;
  const Scores scores = score(model_, *tiny_.backend, ids, [&](int done, int total) {
    EXPECT_GT(done, told);
    EXPECT_EQ(total, 70);
    told = done;
  });
  EXPECT_EQ(told, 70);
  ASSERT_EQ(scores.logprobs.size(), ids.size());
  ASSERT_EQ(scores.argmax.size(), ids.size());
  EXPECT_TRUE(std::isnan(scores.logprobs[0]));

  KvCache cache = tiny_.model.make_cache(70, KvType::f32);
  double sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::vector<float> logits = feed(tiny_.model, cache, std::span(ids).subspan(i, 1));
    EXPECT_EQ(scores.argmax[i], std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (i + 1 == ids.size()) break;
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    EXPECT_NEAR(scores.logprobs[i + 1], logits[ids[i + 1]] - std::log(total), 1e-12);
    sum += scores.logprobs[i + 1];
  }
  EXPECT_NEAR(*scores.perplexity, std::exp(-sum / 69), 1e-9);
}

TEST_F(ScoringTest, OneIdHasNoPerplexity) {
  const TokenId id = 3;
  const Scores scores = score(model_, *tiny_.backend, {&id, 1});
  EXPECT_FALSE(scores.perplexity.has_value());
  EXPECT_EQ(scores.argmax.size(), 1u);
}

TEST_F(ScoringTest, NoIdsAndTooManyAreRefused) {
  EXPECT_THROW(score(model_, *tiny_.backend, {}), Error);
  const std::vector<TokenId> ids(513, 1);
  try {
    score(model_, *tiny_.backend, ids);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("513"), std::string::npos) << text;
    EXPECT_NE(text.find("512"), std::string::npos) << text;
  }
}

TEST_F(ScoringTest, RowCostsComeInTheOrderAskedFor) {
  const std::vector<RowCost> costs = measure_row_costs(tiny_.model, {4, 1, 100}, 30, 3);
  ASSERT_EQ(costs.size(), 3u);
  EXPECT_EQ(costs[0].rows, 4);
  EXPECT_EQ(costs[1].rows, 1);
  EXPECT_EQ(costs[2].rows, 100);
  for (const RowCost& cost : costs) {
    EXPECT_GT(cost.seconds_min, 0);
    EXPECT_GE(cost.seconds_median, cost.seconds_min);
  }
  EXPECT_THROW(measure_row_costs(tiny_.model, {1, 113}, 400, 1), Error);
}

TEST_F(ScoringTest, VocabularyIsReadWithItsSpecialIds) {
  const Vocabulary expected = tiny_vocabulary();
  const Vocabulary& read = model_.tokenizer->vocabulary();
  EXPECT_EQ(read.tokens, expected.tokens);
  EXPECT_EQ(read.types, expected.types);
  EXPECT_EQ(read.merges, expected.merges);
  EXPECT_EQ(read.bos, expected.bos);
  EXPECT_EQ(read.eos, expected.eos);
  EXPECT_FALSE(read.eot.has_value());
}

TEST_F(ScoringTest, UsableTokensEndWithTheVocabulary) {
  const TokenMask mask = usable_tokens(model_);
  EXPECT_TRUE(mask.allows(107));
  for (const TokenId id : {108, 111, 5000}) EXPECT_FALSE(mask.allows(id)) << id;
}

TEST_F(ScoringTest, VocabularyThatDoesNotFitIsRefused) {
  TinyOptions options;
  options.rows = 107;  // one embedding row fewer than tokens
  EXPECT_THROW(open_model(write_tiny_model(tiny_.folder, "short.gguf", options)), Error);
}

}  // namespace
}  // namespace tandem::test
