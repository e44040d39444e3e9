// The tokenizer's part of model files, and what holds where keys are missing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "src/base/error.h"
#include "src/engine/model_files.h"
#include "src/text/sentencepiece_model.h"
#include "tests/base/temp_dir.h"
#include "tests/model/gguf_builder.h"
#include "tests/text/tiny_pieces.h"

namespace tandem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VocabularyFile : public ::testing::Test {
 protected:
  // <unk> <s> </s>, the bytes, then "a" and " a", as a SentencePiece file has them, without any other key.
  static GgufBuilder pieces() {
    const Vocabulary v = tandem::tiny_pieces({" a", "a", " "});
    GgufBuilder out;
    out.set("tokenizer.ggml.model", v.model).set("tokenizer.ggml.tokens", v.tokens);
    return out.set("tokenizer.ggml.scores", v.scores);
  }
  static GgufBuilder byte_level(const std::string& pre) {
    GgufBuilder out;
    out.set("tokenizer.ggml.model", std::string("gpt2")).set("tokenizer.ggml.pre", pre);
    out.set("tokenizer.ggml.merges", std::vector<std::string>{});
    return out.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "<|x|>", "<|y|>"});
  }
  std::string write(GgufBuilder builder) const {
    const std::string path = folder_.path() + "/m.gguf";
    builder.write(path);
    return path;
  }
  Vocabulary read(GgufBuilder builder) const { return read_vocabulary(*GgufFile::open(write(std::move(builder)))); }
  std::string refusal(GgufBuilder builder) const {
    try {
      open_tokenizer(write(std::move(builder)));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::model);
      return error.what();
    }
    return "accepted";
  }

  const TempDir folder_;
};

TEST_F(VocabularyFile, SentencePieceKeysThatAreMissingHaveTheirDefaults) {
  const Vocabulary v = read(pieces());
  EXPECT_EQ(v.bos, 1);
  EXPECT_EQ(v.eos, 2);
  EXPECT_EQ(v.unknown, 0);
  EXPECT_EQ(v.types[0], TokenType::unknown);
  EXPECT_EQ(v.padding, std::nullopt);
  EXPECT_TRUE(v.add_bos);
  EXPECT_TRUE(v.add_space_prefix);
  EXPECT_FALSE(v.remove_extra_spaces);
  EXPECT_TRUE(v.is_control(1));
  EXPECT_TRUE(v.is_control(2));
  EXPECT_EQ(v.types[3], TokenType::byte);
  EXPECT_EQ(v.types[259], TokenType::normal);
  const auto tokenizer = open_tokenizer(write(pieces()));
  EXPECT_THAT(tokenizer->encode_prompt("a\u00e9", Specials::parse), ElementsAre(1, 259, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->encode_prompt("<s>a", Specials::parse), ElementsAre(1, 259));
}

// llama.cpp takes ids 0, 1 and 2 whatever they spell; here what has another name is text.
TEST_F(VocabularyFile, SpecialIdsAreGuessedByTheirSpellingOnly) {
  GgufBuilder builder;
  builder.set("tokenizer.ggml.model", std::string("llama"));
  builder.set("tokenizer.ggml.tokens", std::vector<std::string>{"<pad>", "</s>", "<unk>", "<s>"});
  builder.set("tokenizer.ggml.scores", std::vector<float>(4));
  const Vocabulary v = read(builder);
  EXPECT_EQ(v.unknown, std::nullopt);
  EXPECT_EQ(v.bos, std::nullopt);
  EXPECT_EQ(v.eos, std::nullopt);
  EXPECT_FALSE(v.add_bos);
}

// As llama.cpp: a key that says otherwise wins over the kind's default, in both kinds.
TEST_F(VocabularyFile, AddBosIsTheFilesOwnWord) {
  GgufBuilder silent = pieces(), asking = byte_level("qwen2");
  silent.set("tokenizer.ggml.add_bos_token", false);
  asking.set("tokenizer.ggml.add_bos_token", true).set("tokenizer.ggml.bos_token_id", std::uint32_t{2});
  EXPECT_FALSE(read(silent).add_bos);
  EXPECT_TRUE(read(asking).add_bos);
  GgufBuilder ending = pieces();
  ending.set("tokenizer.ggml.add_eos_token", true);  // a prompt is to be gone on with
  EXPECT_THAT(open_tokenizer(write(ending))->encode_prompt("a", Specials::parse), ElementsAre(1, 259));
}

TEST_F(VocabularyFile, SentencePieceKeysAreRead) {
  GgufBuilder builder = pieces();
  builder.set("tokenizer.ggml.add_bos_token", false).set("tokenizer.ggml.add_space_prefix", false);
  builder.set("tokenizer.ggml.remove_extra_whitespaces", true).set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  builder.set("tokenizer.ggml.padding_token_id", std::uint32_t{2})
      .set("tokenizer.ggml.eom_token_id", std::uint32_t{260});
  const Vocabulary v = read(builder);
  EXPECT_FALSE(v.add_bos);
  EXPECT_FALSE(v.add_space_prefix);
  EXPECT_TRUE(v.remove_extra_spaces);
  EXPECT_EQ(v.unknown, 0);
  EXPECT_EQ(v.types[0], TokenType::unknown);
  EXPECT_THAT(end_ids(v), ElementsAre(2, 260));
}

TEST_F(VocabularyFile, ByteLevelKeysThatAreMissingHaveTheirDefaults) {
  GgufBuilder llama = byte_level("llama-bpe"), qwen = byte_level("qwen2");
  for (GgufBuilder* builder : {&llama, &qwen}) {
    builder->set("tokenizer.ggml.bos_token_id", std::uint32_t{2}).set("tokenizer.ggml.eos_token_id", std::uint32_t{3});
  }
  EXPECT_TRUE(read(llama).add_bos);
  for (const auto& [pre, adds_bos] : std::map<std::string, bool>{
           {"llama3", true}, {"falcon3", true}, {"pixtral", true}, {"dbrx", false}, {"deepseek-r1-qwen", false}}) {
    GgufBuilder other = byte_level(pre);
    other.set("tokenizer.ggml.bos_token_id", std::uint32_t{2});
    EXPECT_EQ(read(other).add_bos, adds_bos) << pre;
  }
  EXPECT_FALSE(read(qwen).add_bos);
  EXPECT_TRUE(read(qwen).is_control(3));  // no types: a special id is no text
  const Vocabulary bare = read(byte_level("llama-bpe"));
  EXPECT_FALSE(bare.add_bos);
  EXPECT_EQ(bare.bos, std::nullopt);
  EXPECT_THAT(end_ids(bare), ElementsAre());
}

TEST_F(VocabularyFile, WhatCannotBeGuessedIsRefused) {
  const Vocabulary v = tandem::tiny_pieces({"a"});
  GgufBuilder scoreless, mergeless, wanting = byte_level("qwen2"), far = pieces(), rewriting = pieces();
  mergeless.set("tokenizer.ggml.model", std::string("gpt2")).set("tokenizer.ggml.pre", std::string("qwen2"));
  mergeless.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  rewriting.set("tokenizer.ggml.precompiled_charsmap", std::vector<std::uint8_t>{1, 2, 3});
  scoreless.set("tokenizer.ggml.model", v.model).set("tokenizer.ggml.tokens", v.tokens);
  wanting.set("tokenizer.ggml.add_bos_token", true);
  far.set("tokenizer.ggml.padding_token_id", std::uint32_t{262});
  EXPECT_THAT(refusal(scoreless), HasSubstr("tokenizer.ggml.scores"));
  EXPECT_EQ(refusal(mergeless), "m.gguf: metadata tokenizer.ggml.merges: expected an array of texts, got no such key");
  EXPECT_EQ(
      refusal(rewriting),
      "m.gguf: tokenizer.ggml.precompiled_charsmap: expected none (text as it stands), got 3 bytes, which rewrite "
      "text");
  EXPECT_THAT(refusal(byte_level("")), HasSubstr("tokenizer.ggml.pre: expected one of"));
  EXPECT_THAT(refusal(wanting), HasSubstr("bos_token_id: expected an id, because add_bos_token is true"));
  EXPECT_THAT(refusal(far), HasSubstr("tokenizer.ggml.padding_token_id"));
}

TEST_F(VocabularyFile, ASentencePieceFileStandsForAModelFile) {
  const Vocabulary v = tandem::tiny_pieces({" a", "a", " "});
  const std::string path = folder_.path() + "/tokenizer.model";
  std::ofstream(path, std::ios::binary) << write_sentencepiece_model(v, "m");
  EXPECT_THAT(open_tokenizer(path)->encode_prompt("a a", Specials::parse), ElementsAre(1, 260, 259));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "no model";
  EXPECT_THROW(open_tokenizer(path), Error);
  EXPECT_THROW(open_tokenizer(folder_.path() + "/none"), Error);
}

}  // namespace
}  // namespace tandem::test
