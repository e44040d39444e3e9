#include <gmock/gmock.h>

#include <optional>

#include "src/base/error.h"
#include "tests/text/golden_rows.h"

namespace tandem {
namespace {

using testing::ElementsAre;

class GoldenQwen : public testing::Test {
 protected:
  void SetUp() override {
    if (small_models_only()) GTEST_SKIP() << "TANDEM_TEST_MODELS=small leaves the Qwen pair out of this run.";
    draft_.emplace("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    target_.emplace("qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf");
  }

  std::optional<GoldenModel> draft_, target_;
};

TEST_F(GoldenQwen, TokenizesAsTheReference) {
  expect_golden_tokens(*draft_);
  expect_golden_tokens(*target_);
}

TEST_F(GoldenQwen, RendersAndEncodesChatsAsTheReference) {
  expect_golden_chats(*draft_);
  expect_golden_chats(*target_);
}

TEST_F(GoldenQwen, UserTextNeverBecomesAControlToken) {  // B01
  const Tokenizer& tokenizer = *target_->tokenizer;
  const std::vector<TokenId> literal = tokenizer.encode("<|im_start|>", Specials::literal);
  EXPECT_THAT(literal, ElementsAre(27, 91, 318, 4906, 91, 29));
  EXPECT_EQ(tokenizer.decode(literal), "<|im_start|>");
  EXPECT_THAT(tokenizer.encode("<|im_start|>", Specials::parse), ElementsAre(151644));
}

TEST_F(GoldenQwen, AddsNoBosAndEndsOnBothMarks) {  // B02, B11
  EXPECT_THAT(target_->tokenizer->encode_prompt("Hello", Specials::parse), ElementsAre(9707));
  EXPECT_THAT(end_ids(target_->tokenizer->vocabulary()), ElementsAre(151643, 151645));
}

TEST_F(GoldenQwen, TakesAnyBytes) {  // B05
  expect_any_bytes(*target_->tokenizer, {});
  const std::vector<TokenId> cut = target_->tokenizer->encode("ok\xE6\xAD", Specials::literal);
  EXPECT_EQ(cut.front(), target_->tokenizer->encode("ok", Specials::literal).front());
}

TEST_F(GoldenQwen, WhatIsSettledOfAnOpenTextNeverChanges) { expect_settled_tokens_stay(*target_); }

TEST_F(GoldenQwen, LongRunsLoseNothing) { expect_long_runs(*target_->tokenizer); }

TEST_F(GoldenQwen, ThePairSharesItsVocabularyAndSmolLm2DoesNot) {  // B07, B08
  const Vocabulary& target = target_->tokenizer->vocabulary();
  EXPECT_NO_THROW(require_same_vocabulary(target, draft_->tokenizer->vocabulary(), "target", "draft"));
  const GoldenModel other("smollm2-135m-instruct", "smollm2-135m-instruct-q4_1.gguf");
  try {
    require_same_vocabulary(target, other.tokenizer->vocabulary(), "target", "draft");
    FAIL() << "another vocabulary was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("vocabulary of 49152 tokens is not that of target (151936 tokens): the "
                                   "first difference is id 0: expected \"!\", got \"<|endoftext|>\""));
  }
}

}  // namespace
}  // namespace tandem
