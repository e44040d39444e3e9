#include "src/text/sentencepiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>

#include "src/base/error.h"
#include "src/text/text_stream.h"
#include "tests/text/tiny_pieces.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TokenId kFirst = 259;  // of the pieces of tiny_pieces()
constexpr TokenId kByte = 3;     // the token of byte 0

const std::vector<std::string> kEnglish = {"th", "he", "the", " the", "in", " a", "  ",     "    ", "\u00e9t", " ",
                                           "t",  "h",  "e",   "i",    "n",  "a",  "\u00e9", "\n",   "-",       "9"};

TEST(SentencePiece, MergesTheHighestScoreFirstAndTheLeftmostOnTies) {
  Vocabulary v = tiny_pieces({"bc", "ab", "aa", "abc", "a", "b", "c"});
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  EXPECT_THAT(tokenizer->encode("abc", Specials::literal), ElementsAre(kFirst + 3));  // bc first, then a + bc
  EXPECT_THAT(tokenizer->encode("aaa", Specials::literal), ElementsAre(kFirst + 2, kFirst + 4));
  EXPECT_THAT(tokenizer->encode("abab", Specials::literal), ElementsAre(kFirst + 1, kFirst + 1));
  EXPECT_THAT(tokenizer->encode("", Specials::literal), ElementsAre());
}

// The textbook loop: over and over the best pair of all.
std::vector<TokenId> merge_slowly(std::string_view text, const Vocabulary& v) {
  std::vector<std::string> symbols;
  for (const char byte : text) symbols.emplace_back(1, byte);
  const auto id_of = [&](const std::string& piece) {
    return static_cast<TokenId>(std::find(v.tokens.begin(), v.tokens.end(), piece) - v.tokens.begin());
  };
  while (true) {
    std::size_t best = symbols.size();
    float best_score = -std::numeric_limits<float>::infinity();
    for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
      const TokenId id = id_of(symbols[at] + symbols[at + 1]);
      if (id < v.size() && v.scores[id] > best_score) best = at, best_score = v.scores[id];
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& symbol : symbols) ids.push_back(id_of(symbol));
  return ids;
}

TEST(SentencePiece, EqualsTheTextbookLoop) {
  const Vocabulary v = tiny_pieces({"ab", "ba", "abab", "aa", "aab", "baba", "cab", "ababc", "bb", "a", "b", "c"});
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int length = 1 + static_cast<int>(random() % 24); length > 0; --length) text += "abc"[random() % 3];
    ASSERT_EQ(tokenizer->encode(text, Specials::literal), merge_slowly(text, v)) << text;
  }
}

TEST(SentencePiece, WhatHasNoPieceBecomesBytes) {
  const auto tokenizer = make_tokenizer(tiny_pieces({"o", "k", "ok"}), "m.gguf");
  EXPECT_THAT(tokenizer->encode("ok\u00e9", Specials::literal), ElementsAre(kFirst + 2, kByte + 0xC3, kByte + 0xA9));
  EXPECT_THAT(tokenizer->encode("ok\xE6\xAD", Specials::literal), ElementsAre(kFirst + 2, kByte + 0xE6, kByte + 0xAD));
  EXPECT_THAT(tokenizer->encode(std::string_view("\0\xFF", 2), Specials::literal), ElementsAre(kByte, kByte + 0xFF));
  EXPECT_THAT(tokenizer->encode("\xE6ok", Specials::literal), ElementsAre(kByte + 0xE6, kFirst + 2));
  EXPECT_THAT(tokenizer->encode("\xFFok\xFFok", Specials::literal),  // as llama.cpp: never the lead of a character
              ElementsAre(kByte + 0xFF, kByte + 'o', kByte + 'k', kByte + 0xFF, kFirst + 2));
}

TEST(SentencePiece, AnyBytesDecodeToThemselves) {
  for (const bool prefix : {false, true}) {
    Vocabulary v = tiny_pieces(kEnglish);
    v.add_space_prefix = prefix;
    add_piece(v, "<w>", TokenType::user_defined);
    const auto tokenizer = make_tokenizer(v, "m.gguf");
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (int i = static_cast<int>(random() % 20); i > 0; --i) {
        text.push_back(static_cast<char>(round % 2 ? random() % 256 : " the\xE2\x96<w>"[random() % 10]));
      }
      if (text.find("\u2581") != std::string::npos) continue;  // stands for a space
      for (const Specials specials : {Specials::literal, Specials::parse}) {
        ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, specials), true, Place::begins), text);
      }
    }
  }
}

TEST(SentencePiece, ASpaceGoesInFrontOfTextsThatBegin) {
  Vocabulary v = tiny_pieces(kEnglish);
  v.add_space_prefix = true;
  const TokenId word = add_piece(v, "<w>", TokenType::user_defined);
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  const TokenId the = kFirst + 3, bare = kFirst + 2;
  EXPECT_THAT(tokenizer->encode("the", Specials::literal), ElementsAre(the));
  EXPECT_THAT(tokenizer->encode("the", Specials::literal, Place::goes_on), ElementsAre(bare));
  EXPECT_THAT(tokenizer->encode("<s>the</s>the", Specials::parse), ElementsAre(1, the, 2, the));
  EXPECT_THAT(tokenizer->encode("the<w>the", Specials::parse), ElementsAre(the, word, bare));
  EXPECT_THAT(tokenizer->encode("", Specials::literal), ElementsAre());
  EXPECT_EQ(tokenizer->decode({the}), " the");  // what an answer goes on with keeps its space
  EXPECT_EQ(tokenizer->decode({1, the, the}, false, Place::begins), "the the");
  v.add_space_prefix = false;
  EXPECT_THAT(make_tokenizer(v, "m.gguf")->encode("<s>the</s>the", Specials::parse), ElementsAre(1, bare, 2, bare));
}

TEST(SentencePiece, StreamingGivesTheBytesOfDecoding) {
  Vocabulary v = tiny_pieces(kEnglish);
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  std::mt19937 random(31);
  for (int round = 0; round < 300; ++round) {
    std::vector<TokenId> ids(random() % 12);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % v.tokens.size());
    TextStream stream(*tokenizer, {}, {});
    std::string text;
    for (const TokenId id : ids) {
      stream.push(id);
      text += stream.take();
    }
    ASSERT_EQ(text + stream.finish(), tokenizer->decode(ids));
  }
}

TEST(SentencePiece, ExtraSpacesGoWhereTheModelSaysSo) {
  Vocabulary v = tiny_pieces(kEnglish);
  v.remove_extra_spaces = true;
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  EXPECT_EQ(tokenizer->encode("  the    the ", Specials::literal), tokenizer->encode("the the", Specials::literal));
  EXPECT_EQ(tokenizer->encode_open("the the ", Place::begins).settled_bytes, 0u);
}

TEST(SentencePiece, TextNeverBecomesAControlToken) {
  Vocabulary v = tiny_pieces({"<", "s", ">", "<s", "<s>", "/"});
  v.tokens.back() = "a";  // a control token of one character
  v.types.back() = TokenType::control;
  const TokenId mark = add_piece(v, "<end_of_turn>", TokenType::user_defined);  // an end mark that the file forgot
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  EXPECT_THAT(tokenizer->encode("<s>a", Specials::literal), ElementsAre(kFirst + 4, kByte + 'a'));
  EXPECT_THAT(tokenizer->encode("<s>", Specials::parse), ElementsAre(1));
  EXPECT_THAT(tokenizer->encode("<end_of_turn>", Specials::literal), testing::Not(testing::Contains(mark)));
  EXPECT_THAT(tokenizer->encode("<end_of_turn>", Specials::parse), ElementsAre(mark));
  EXPECT_EQ(tokenizer->decode({1, kFirst + 4}), "<s>");
  EXPECT_EQ(tokenizer->bytes(1, true), "<s>");
}

TEST(SentencePiece, UserDefinedTokensAreTakenWhole) {
  Vocabulary v = tiny_pieces(kEnglish);
  const TokenId three = add_piece(v, "   ", TokenType::user_defined);
  const TokenId lines = add_piece(v, "\n\n", TokenType::user_defined);
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  EXPECT_THAT(tokenizer->encode("   the\n\n\n", Specials::literal), ElementsAre(three, kFirst + 2, lines, kFirst + 17));
  EXPECT_EQ(tokenizer->decode({three, lines}), "   \n\n");
}

TEST(SentencePiece, AnUnusedTokenIsNeverGiven) {
  Vocabulary v = tiny_pieces({"ab", "abc", "a", "b", "c"});
  v.types[kFirst] = TokenType::unused;      // ab: a way to abc, and else taken apart again
  v.types[kFirst + 4] = TokenType::unused;  // c
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  EXPECT_THAT(tokenizer->encode("ab", Specials::literal), ElementsAre(kFirst + 2, kFirst + 3));
  EXPECT_THAT(tokenizer->encode("abc", Specials::literal), ElementsAre(kFirst + 1));
  EXPECT_THAT(tokenizer->encode("c", Specials::literal), ElementsAre(kByte + 'c'));
  const TokenId mark = add_piece(v, "<eos>", TokenType::unused);  // not even where control tokens are parsed
  EXPECT_THAT(make_tokenizer(v, "m.gguf")->encode("<eos>", Specials::parse), testing::Not(testing::Contains(mark)));
}

TEST(SentencePiece, WithoutBytesOrAnUnknownTokenTextIsLeftOut) {
  Vocabulary v = tiny_pieces({"o", "k"}, false);
  EXPECT_THAT(make_tokenizer(v, "m.gguf")->encode("o\u00e9k\xFF", Specials::literal), ElementsAre(3, 0, 4, 0));
  v.unknown.reset();
  v.types[0] = TokenType::control;
  EXPECT_THAT(make_tokenizer(v, "m.gguf")->encode("o\u00e9k\xFF", Specials::literal), ElementsAre(3, 4));
}

TEST(SentencePiece, OddVocabulariesLoad) {
  Vocabulary v = tiny_pieces({"a", "a", "", "b c"});  // twice the same, an empty one
  add_piece(v, "<pad>", TokenType::unknown);          // a second unknown one
  const auto tokenizer = make_tokenizer(v, "m.gguf");
  EXPECT_THAT(tokenizer->encode("a", Specials::literal), ElementsAre(kFirst));
  EXPECT_EQ(tokenizer->decode({kFirst + 1, kFirst + 2, kFirst + 3}), "ab c");
}

TEST(SentencePiece, RefusesWhatDoesNotFitTogether) {
  const auto refused = [](auto change) -> std::string {
    Vocabulary v = tiny_pieces({"a"});
    change(v);
    try {
      make_tokenizer(v, "m.gguf");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::model);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refused([](Vocabulary& v) { v.scores.clear(); }),
            "m.gguf: tokenizer.ggml.scores: expected 260 entries, one a token, got 0");
  EXPECT_EQ(refused([](Vocabulary& v) { v.scores[7] = std::numeric_limits<float>::quiet_NaN(); }),
            "m.gguf: tokenizer.ggml.scores[7]: expected a finite number, got nan");
  EXPECT_EQ(refused([](Vocabulary& v) { v.tokens[5] = "<0x2>"; }),
            "m.gguf: tokenizer.ggml.tokens[5]: expected a byte token <0x00> to <0xFF>, got \"<0x2>\"");
  EXPECT_EQ(refused([](Vocabulary& v) { v.types[5] = TokenType::normal; }),
            "m.gguf: tokenizer.ggml.token_type: expected 256 byte tokens or none, got 255");
}

// What is called settled stays whatever follows, and all but the end of a text is.
TEST(SentencePiece, WhatIsSettledOfAnOpenTextNeverChanges) {
  const std::vector<std::string> parts = {"a", "the", " ",    "  ",      "\n",     "t",        "h",   "e",  "in",
                                          "-", "9",   "\xFF", "\u00e9t", "\u65e5", "\xF0\x9F", "<w>", "<w", "\u2581"};
  std::mt19937 random(29);
  std::size_t settled = 0, all = 0;
  for (const bool prefix : {false, true}) {
    Vocabulary v = tiny_pieces(kEnglish);
    v.add_space_prefix = prefix;
    add_piece(v, "<w>", TokenType::user_defined);
    add_piece(v, "\n\n", TokenType::user_defined);
    add_piece(v, "nin", TokenType::unused, 1);
    const auto tokenizer = make_tokenizer(v, "m.gguf");
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (int i = 0; i < 14; ++i) text += parts[random() % parts.size()];
      const std::string begin = text.substr(0, random() % (text.size() + 1));
      const OpenEncoding open = tokenizer->encode_open(begin, Place::begins);
      ASSERT_EQ(open.ids, tokenizer->encode(begin, Specials::literal));
      std::vector<TokenId> ids(open.ids.begin(), open.ids.begin() + static_cast<std::ptrdiff_t>(open.settled_ids));
      const Place place = open.settled_bytes > 0 ? Place::goes_on : Place::begins;
      const std::vector<TokenId> rest = tokenizer->encode(text.substr(open.settled_bytes), Specials::literal, place);
      ids.insert(ids.end(), rest.begin(), rest.end());
      ASSERT_EQ(ids, tokenizer->encode(text, Specials::literal)) << begin << "|" << text;
      settled += open.settled_bytes, all += begin.size();
    }
  }
  EXPECT_GT(settled, all / 2);
}

TEST(SentencePiece, OneLongRunTakesAboutLinearTime) {
  std::vector<std::string> pieces = {"ab", "a", "b", " ", "\u65e5"};
  for (std::string doubled = "a"; doubled.size() < 32;) pieces.push_back(doubled += doubled);
  const auto tokenizer = make_tokenizer(tiny_pieces(pieces), "m.gguf");
  const auto seconds = [&](std::string_view unit, std::size_t length) {
    std::string text;
    while (text.size() < length) text += unit;
    double best = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::clock_t start = std::clock();
      EXPECT_FALSE(tokenizer->encode(text, Specials::parse).empty());
      best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return best;
  };
  for (const char* unit : {"a", "ab", " ", "!", "\u65e5", "\x80"}) {
    // 16 times the text: n log n gives about 21, a quadratic step anywhere 256.
    EXPECT_LT(seconds(unit, 100000), 80 * seconds(unit, 6250)) << '"' << unit << '"';
  }
}

TEST(PieceJoints, KnowNeighboursAndSeams) {
  PieceJoints joints;
  joints.add("ab");
  joints.add("\u2581a");
  EXPECT_TRUE(joints.may_join('a', 'b'));
  EXPECT_TRUE(joints.may_join(' ', 'a'));
  EXPECT_FALSE(joints.may_join('b', 'a'));
  EXPECT_EQ(joints.last_seam("ab ab"), 2u);
  EXPECT_EQ(joints.last_seam("ab"), 0u);
  EXPECT_EQ(joints.last_seam("ab\xE6x"), 3u);
  EXPECT_EQ(joints.last_seam("ab\xFFxyz"), 2u);
  EXPECT_EQ(joints.last_seam("a\xE2\x96"), 0u);  // may become the mark of a space
}

}  // namespace
}  // namespace tandem
