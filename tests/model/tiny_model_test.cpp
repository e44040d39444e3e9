// The tiny model is what other tests take it for.
#include "tests/model/tiny_model.h"

#include <gtest/gtest.h>

#include "src/text/tokenizer.h"

namespace tandem::test {
namespace {

TEST(TinyModel, VocabularyMakesARealTokenizer) {
  const auto tokenizer = make_tokenizer(tiny_vocabulary(), "tiny");
  const std::string text = "the tin hat\nthat hath an inner 'the' {x: 42}";
  const std::vector<TokenId> ids = tokenizer->encode(text, Specials::literal);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_LT(ids.size(), text.size());
  EXPECT_EQ(tokenizer->encode("<|im_end|>", Specials::parse), std::vector<TokenId>{tiny_vocabulary().size() - 1});
  EXPECT_EQ(end_ids(tiny_vocabulary()).back(), tiny_vocabulary().size() - 1);
  EXPECT_LT(tiny_vocabulary().size(), TinyOptions{}.rows);
}

TEST(TinyModel, ASeedIsOneModelAndAnotherSeedAnother) {
  TinyOptions options;
  const std::string bytes = tiny_gguf(options).bytes();
  EXPECT_EQ(tiny_gguf(options).bytes(), bytes);
  options.seed = 2;
  EXPECT_NE(tiny_gguf(options).bytes(), bytes);
}

// Noise makes a draft that agrees with its target often, but not always.
TEST(TinyModel, ANoisyCopyOftenAgrees) {
  TinyOptions options;
  TinyModel target(options);
  options.noise = 0.2;
  TinyModel draft(options);
  std::mt19937_64 random(51);
  int agreed = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<TokenId> prompt = random_tokens(random, 8);
    const auto best = [&](TinyModel& tiny) {
      KvCache cache = tiny.model.make_cache(8, KvType::f32);
      const std::vector<float> logits = feed(tiny.model, cache, prompt);
      return std::max_element(logits.begin(), logits.end()) - logits.begin();
    };
    agreed += best(target) == best(draft);
  }
  EXPECT_GT(agreed, 30);
  EXPECT_LT(agreed, 100);
}

}  // namespace
}  // namespace tandem::test
