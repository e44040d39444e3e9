#include "src/text/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "src/base/error.h"
#include "src/text/proto_wire.h"
#include "src/text/tokenizer.h"
#include "tests/text/tiny_pieces.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A tokenizer.model as the library's trainer writes it.
struct ModelFileParts {
  std::vector<std::string> pieces = {"<unk>", "<s>", "</s>", "\u2581", "a", "\u2581a"};
  std::string trainer, normalizer, denormalizer;
  std::uint64_t marks = 3;  // the type of <s> and </s>: control

  std::string bytes() const {
    std::string out;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      std::string piece;
      append_bytes(piece, 1, pieces[i]);
      append_float(piece, 2, -static_cast<float>(i));
      if (i < 3) append_varint(piece, 3, i == 0 ? 2 : marks);
      append_bytes(out, 1, piece);
    }
    append_bytes(out, 2, trainer);
    append_bytes(out, 3, normalizer);
    append_bytes(out, 5, denormalizer);
    return out;
  }
};

ModelFileParts bpe_file() {
  ModelFileParts file;
  append_varint(file.trainer, 3, 2);        // model_type: BPE
  append_bytes(file.trainer, 7, "a name");  // passed over
  append_float(file.trainer, 10, 0.9995f);
  append_varint(file.normalizer, 4, 0);  // remove_extra_whitespaces
  return file;
}

std::string error_of(const std::string& bytes, ErrorKind kind) {
  try {
    make_tokenizer(read_sentencepiece_model(bytes, "t.model"), "t.model");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "no error";
}

TEST(SentencePieceFile, GivesTheVocabularyAndItsDefaults) {
  const Vocabulary v = read_sentencepiece_model(bpe_file().bytes(), "t.model");
  EXPECT_EQ(v.model, "llama");
  EXPECT_THAT(v.tokens, ElementsAre("<unk>", "<s>", "</s>", "\u2581", "a", "\u2581a"));
  EXPECT_THAT(v.scores, ElementsAre(0, -1, -2, -3, -4, -5));
  EXPECT_EQ(v.types[0], TokenType::unknown);
  EXPECT_EQ(v.types[5], TokenType::normal);
  EXPECT_EQ(v.unknown, 0);
  EXPECT_EQ(v.bos, 1);
  EXPECT_EQ(v.eos, 2);
  EXPECT_EQ(v.padding, std::nullopt);
  EXPECT_TRUE(v.add_bos);
  EXPECT_TRUE(v.add_space_prefix);
  EXPECT_FALSE(v.remove_extra_spaces);
  EXPECT_THAT(make_tokenizer(v, "t.model")->encode_prompt("a a", Specials::parse), ElementsAre(1, 5, 5));
}

TEST(SentencePieceFile, SaysWhichIdsAreSpecial) {
  ModelFileParts file = bpe_file();
  append_varint(file.trainer, 41, static_cast<std::uint64_t>(-1));  // no BOS
  append_varint(file.trainer, 42, 1);
  append_varint(file.trainer, 43, 2);
  append_varint(file.normalizer, 3, 0);
  const Vocabulary v = read_sentencepiece_model(file.bytes(), "t.model");
  EXPECT_EQ(v.bos, std::nullopt);
  EXPECT_FALSE(v.add_bos);
  EXPECT_EQ(v.eos, 1);
  EXPECT_EQ(v.padding, 2);
  EXPECT_FALSE(v.add_space_prefix);
}

// The default ids of a file without such pieces would put a piece of text in front of every prompt.
TEST(SentencePieceFile, APieceThatIsNoControlTokenIsNoSpecialId) {
  for (const std::uint64_t type : {1u, 4u, 5u}) {
    ModelFileParts file = bpe_file();
    file.marks = type;
    append_varint(file.trainer, 40, 3);  // unknown: a piece of text
    append_varint(file.trainer, 43, 4);
    const Vocabulary v = read_sentencepiece_model(file.bytes(), "t.model");
    for (const std::optional<TokenId>& id : {v.bos, v.eos, v.unknown, v.padding}) EXPECT_EQ(id, std::nullopt);
    EXPECT_FALSE(v.add_bos);
  }
}

TEST(SentencePieceFile, RefusesWhatItWouldTokenizeWrongly) {
  ModelFileParts unigram = bpe_file(), rewrites = bpe_file(), behind = bpe_file(), empty = bpe_file();
  append_varint(unigram.trainer, 3, 1);
  append_bytes(rewrites.normalizer, 2, "map");
  append_varint(behind.trainer, 24, 1);
  empty.pieces.clear();
  EXPECT_EQ(error_of(unigram.bytes(), ErrorKind::model), "t.model: trainer_spec.model_type: expected 2 (BPE), got 1");
  EXPECT_THAT(error_of(rewrites.bytes(), ErrorKind::model), HasSubstr("precompiled_charsmap: expected none"));
  EXPECT_THAT(error_of(behind.bytes(), ErrorKind::model), HasSubstr("treat_whitespace_as_suffix 1"));
  EXPECT_THAT(error_of(empty.bytes(), ErrorKind::file), HasSubstr("expected pieces"));
  EXPECT_THAT(error_of("", ErrorKind::file), HasSubstr("expected pieces"));
  EXPECT_THAT(error_of("{\"model\": 1}", ErrorKind::file), HasSubstr("t.model: byte "));
}

// Cut anywhere, or with any byte changed: a vocabulary or an Error, and never what the library would die of.
TEST(SentencePieceFile, SurvivesDamage) {
  const std::string whole = bpe_file().bytes();
  const auto attempt = [](const std::string& bytes) {
    try {
      make_tokenizer(read_sentencepiece_model(bytes, "t.model"), "t.model")->encode(" a\u00e9\xFF", Specials::parse);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("t.model"));
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) attempt(whole.substr(0, length));
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = whole;
    for (int i = 0; i < 1 + round % 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    attempt(changed);
  }
}

TEST(SentencePieceModel, IsReadAsItWasWritten) {
  Vocabulary v = tiny_pieces({"a", " b", "\u65e5"});
  const Vocabulary read = read_sentencepiece_model(write_sentencepiece_model(v, "m.gguf"), "m.gguf");
  ASSERT_EQ(read.size(), v.size());
  for (TokenId id = 3; id < v.size(); ++id) {
    EXPECT_EQ(read.tokens[id], v.tokens[id]);
    EXPECT_EQ(read.scores[id], v.scores[id]);
    EXPECT_EQ(read.types[id], v.types[id]);
  }
  EXPECT_FALSE(read.add_space_prefix);  // spaces are ours to put in order
  EXPECT_FALSE(read.remove_extra_spaces);
}

TEST(SentencePieceModel, ByteTokensAreKnownByTheirSpelling) {
  EXPECT_EQ(byte_of_piece("<0x00>"), 0);
  EXPECT_EQ(byte_of_piece("<0xAF>"), 0xAF);
  for (const char* other : {"<0xaf>", "<0x0>", "<0x0AF>", "0x00", "", "<0xG0>"}) EXPECT_EQ(byte_of_piece(other), -1);
}

}  // namespace
}  // namespace tandem
