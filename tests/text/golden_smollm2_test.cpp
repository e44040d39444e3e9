#include <gmock/gmock.h>

#include "tests/text/golden_rows.h"

namespace tandem {
namespace {

using testing::ElementsAre;

class GoldenSmolLm2 : public testing::Test {
 protected:
  const GoldenModel model_{"smollm2-135m-instruct", "smollm2-135m-instruct-q4_1.gguf"};
  const Tokenizer& tokenizer_ = *model_.tokenizer;
};

TEST_F(GoldenSmolLm2, TokenizesAsTheReference) { expect_golden_tokens(model_); }

TEST_F(GoldenSmolLm2, RendersAndEncodesChatsAsTheReference) { expect_golden_chats(model_); }

TEST_F(GoldenSmolLm2, AddsNoBosAndEndsOnBothMarks) {  // B02, B11
  EXPECT_THAT(tokenizer_.encode_prompt("Hello", Specials::parse), ElementsAre(19556));
  EXPECT_THAT(end_ids(tokenizer_.vocabulary()), ElementsAre(0, 2));
}

TEST_F(GoldenSmolLm2, TakesBytesThatAreNotUtf8) {  // B05
  EXPECT_EQ(tokenizer_.decode(tokenizer_.encode("\xE2\x80", Specials::literal)), "\xE2\x80");
  const std::vector<TokenId> ok = tokenizer_.encode("ok", Specials::literal);
  const std::vector<TokenId> cut = tokenizer_.encode("ok\xE6\xAD", Specials::literal);
  EXPECT_EQ(tokenizer_.decode(cut), "ok\xE6\xAD");
  ASSERT_GT(cut.size(), ok.size());
  EXPECT_TRUE(std::equal(ok.begin(), ok.end(), cut.begin()));
  EXPECT_EQ(tokenizer_.decode(tokenizer_.encode("a\xFF", Specials::literal)), "a\uFFFD");  // it has no token for FF
  expect_any_bytes(tokenizer_, {0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF2, 0xF5,
                                0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF});
}

TEST_F(GoldenSmolLm2, WhatIsSettledOfAnOpenTextNeverChanges) { expect_settled_tokens_stay(model_); }

TEST_F(GoldenSmolLm2, LongRunsLoseNothing) { expect_long_runs(tokenizer_); }

}  // namespace
}  // namespace tandem
