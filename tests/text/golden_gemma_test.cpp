#include <gmock/gmock.h>

#include <chrono>
#include <optional>

#include "src/text/text_stream.h"
#include "tests/text/golden_rows.h"

namespace tandem {
namespace {

using testing::ElementsAre;

class GoldenGemma : public testing::Test {
 protected:
  void SetUp() override {
    if (small_models_only()) GTEST_SKIP() << "TANDEM_TEST_MODELS=small leaves Gemma out of this run.";
    model_.emplace("gemma3-270m", "gemma-3-270m-q4_k_m.gguf");
  }
  const Tokenizer& tokenizer() const { return *model_->tokenizer; }

  std::optional<GoldenModel> model_;
};

TEST_F(GoldenGemma, TokenizesAsTheReference) { expect_golden_tokens(*model_); }

TEST_F(GoldenGemma, BosStandsInFrontOnce) {  // B02
  EXPECT_THAT(tokenizer().encode_prompt("Hello", Specials::parse), ElementsAre(2, 9259));
  EXPECT_THAT(tokenizer().encode_prompt("<bos>Hello", Specials::parse), ElementsAre(2, 9259));
  EXPECT_THAT(tokenizer().encode_prompt("", Specials::parse), ElementsAre(2));
}

TEST_F(GoldenGemma, KeepsIndentationWholeAndAddsNoSpaceBehindControlTokens) {  // B04
  const auto encoded = [&](std::string_view text) { return tokenizer().encode(text, Specials::parse); };
  EXPECT_THAT(encoded("\t\t\t\t\t\ttest"), ElementsAre(255973, 2181));
  EXPECT_THAT(encoded("    "), ElementsAre(140));
  EXPECT_THAT(encoded("<pad>text<eos>"), ElementsAre(0, 1005, 1));
  for (const char* text : {"\t\t\t\t\t\ttest", "    ", "<pad>text<eos>"}) {
    EXPECT_EQ(tokenizer().decode(encoded(text), true), text);
  }
}

TEST_F(GoldenGemma, StreamsWhatItDecodes) {  // B10, B11
  for (const std::vector<TokenId>& ids : {std::vector<TokenId>{9259, 1816}, {1816}, {1816, 464, 366, 138}}) {
    TextStream stream(tokenizer(), end_ids(tokenizer().vocabulary()), {});
    std::string text;
    for (const TokenId id : ids) {
      EXPECT_FALSE(stream.push(id));
      text += stream.take();
    }
    EXPECT_EQ(text + stream.finish(), tokenizer().decode(ids));
  }
  EXPECT_EQ(tokenizer().decode({9259, 1816}), "Hello text");
  EXPECT_EQ(tokenizer().decode({1816}), " text");
  EXPECT_THAT(end_ids(tokenizer().vocabulary()), ElementsAre(1, 106));
}

TEST_F(GoldenGemma, TakesAnyBytes) {  // B05
  expect_any_bytes(tokenizer(), {});
  const std::vector<TokenId> cut = tokenizer().encode("ok\xE6\xAD", Specials::literal);
  EXPECT_THAT(cut, ElementsAre(680, 468, 411));
  EXPECT_EQ(tokenizer().decode(tokenizer().encode(std::string_view("a\0b", 3), Specials::literal)),
            std::string("a\0b", 3));
}

TEST_F(GoldenGemma, WhatIsSettledOfAnOpenTextNeverChanges) { expect_settled_tokens_stay(*model_); }

// Of running text all but the last word or two is settled, so that what follows costs no more as the text grows.
TEST_F(GoldenGemma, MostOfAnOpenTextIsSettled) {
  for (const char* text : {"The lighthouse keeper found a bottle", "int main() {\n  return argc - 1;\n}\n",
                           "Der Leuchtturmw\u00e4rter fand eine Flasche"}) {
    const OpenEncoding open = tokenizer().encode_open(text, Place::begins);
    EXPECT_GT(open.settled_bytes + 16, std::string_view(text).size()) << text;
  }
}

TEST_F(GoldenGemma, LongRunsLoseNothing) { expect_long_runs(tokenizer()); }

}  // namespace
}  // namespace tandem
