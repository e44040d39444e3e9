#include "src/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "src/base/error.h"
#include "src/text/pretokenizer.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> pieces_of(std::string_view pre, std::string_view text) {
  std::vector<std::string_view> pieces;
  Pretokenizer(pre, "test.gguf").split(text, pieces);
  return {pieces.begin(), pieces.end()};
}

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    return error.what();
  }
  return "no error";
}

TEST(Pretokenizer, SplitsAsTheModelsWereTrained) {
  EXPECT_THAT(pieces_of("gpt-2", "It's  12 a\n\n b'S"),
              ElementsAre("It", "'s", " ", " 12", " a", "\n\n", " b", "'", "S"));
  EXPECT_THAT(pieces_of("smollm", "x 12.5  y"), ElementsAre("x", " ", "1", "2", ".", "5", " ", " y"));
  EXPECT_THAT(pieces_of("smollm", "a  7"), ElementsAre("a", "  ", "7"));
  EXPECT_THAT(pieces_of("qwen2", "WE'VE 1234 (x)!\n\n  y\t\n"),
              ElementsAre("WE", "'VE", " ", "1", "2", "3", "4", " (", "x", ")!\n\n", " ", " y", "\t\n"));
  for (const char* pre : {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "dbrx", "smaug-bpe"}) {
    EXPECT_THAT(pieces_of(pre, "1234567 \u00e9t\u00e9"), ElementsAre("123", "456", "7", " \u00e9t\u00e9")) << pre;
  }
  for (const char* pre : {"qwen2", "deepseek-r1-qwen", "megrez"}) {
    EXPECT_THAT(pieces_of(pre, "a'LL 12"), ElementsAre("a", "'LL", " ", "1", "2")) << pre;
  }
}

TEST(Pretokenizer, WhiteSpaceIsUnicodes) {
  EXPECT_THAT(pieces_of("qwen2", "a\u3000\u3000b"), ElementsAre("a", "\u3000", "\u3000b"));
  EXPECT_THAT(pieces_of("gpt-2", "a\u180e"), ElementsAre("a", "\u180e"));  // no white space: taken by the symbols
  EXPECT_THAT(pieces_of("gpt-2", " \u180e"), ElementsAre(" \u180e"));
}

TEST(Pretokenizer, PiecesJoinToTheText) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"a",  "Z",  "'", "s",      "9",      " ",      "\n",
                                          "\r", "\t", "-", "\u00e9", "\u65e5", "\u0663", "\u3000"};
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (int i = 0; i < 12; ++i) text += parts[random() % parts.size()];
      std::string joined;
      for (const std::string& piece : pieces_of(pre, text)) joined += piece;
      ASSERT_EQ(joined, text);
    }
  }
}

TEST(Bpe, LowestRankMergesFirstAndLeftmostOnTies) {
  const Vocabulary vocabulary = tiny_vocabulary("gpt-2", {{"b", "c"}, {"a", "b"}, {"a", "a"}, {"a", "bc"}});
  const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
  EXPECT_THAT(tokenizer->encode("abc", Specials::literal), ElementsAre(259));       // bc first, then a + bc
  EXPECT_THAT(tokenizer->encode("aaa", Specials::literal), ElementsAre(258, 'a'));  // the left pair
  EXPECT_THAT(tokenizer->encode("abab", Specials::literal), ElementsAre(257, 257));
  EXPECT_THAT(tokenizer->encode("", Specials::literal), ElementsAre());
}

// The textbook loop: over and over the best pair of the whole piece.
std::vector<TokenId> merge_slowly(std::string_view piece,
                                  const std::vector<std::pair<std::string, std::string>>& merges) {
  std::vector<std::string> symbols;
  for (const char byte : piece) symbols.emplace_back(1, byte);
  while (true) {
    std::size_t best_rank = merges.size(), best_at = 0;
    for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
      const auto found = std::find(merges.begin(), merges.end(), std::pair(symbols[at], symbols[at + 1]));
      const std::size_t rank = static_cast<std::size_t>(found - merges.begin());
      if (rank < best_rank) best_rank = rank, best_at = at;
    }
    if (best_rank == merges.size()) break;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& symbol : symbols) {
    const auto made = std::find_if(merges.begin(), merges.end(),
                                   [&](const auto& merge) { return merge.first + merge.second == symbol; });
    ids.push_back(symbol.size() == 1 ? static_cast<unsigned char>(symbol[0])
                                     : 256 + static_cast<TokenId>(made - merges.begin()));
  }
  return ids;
}

TEST(Bpe, EqualsTheTextbookLoop) {
  const std::vector<std::pair<std::string, std::string>> merges = {{"a", "b"},  {"b", "a"},    {"ab", "ab"},
                                                                   {"a", "a"},  {"aa", "b"},   {"ba", "ba"},
                                                                   {"c", "ab"}, {"abab", "c"}, {"b", "b"}};
  const auto tokenizer = make_tokenizer(tiny_vocabulary("gpt-2", merges), "test.gguf");
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string piece;
    for (int length = 1 + static_cast<int>(random() % 24); length > 0; --length) piece += "abc"[random() % 3];
    ASSERT_EQ(tokenizer->encode(piece, Specials::literal), merge_slowly(piece, merges)) << piece;
  }
}

TEST(Bpe, AnyBytesDecodeToThemselves) {
  Vocabulary vocabulary = tiny_vocabulary("qwen2", {{"o", "k"}, {"\xE2", "\x80"}, {"\xC3", "\xA9"}});
  add(vocabulary, "<|end|>", TokenType::control);
  const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
  EXPECT_THAT(tokenizer->encode("\xE2\x80", Specials::literal), ElementsAre(257));
  EXPECT_THAT(tokenizer->encode("ok\xE6\xAD", Specials::literal), ElementsAre(256, 0xE6, 0xAD));
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = static_cast<int>(random() % 20); i > 0; --i) {
      text.push_back(static_cast<char>(round % 2 ? random() % 256 : 0x80 + random() % 128));
    }
    for (const Specials specials : {Specials::literal, Specials::parse}) {
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, specials), true), text);
    }
  }
}

// What is called settled stays whatever follows, and all but the end of a text is.
TEST(Bpe, WhatIsSettledOfAnOpenTextNeverChanges) {
  const std::vector<std::string> parts = {"a",      "the",    "I'",     "l",      "9",        " ",     "\n",
                                          "\r",     "\t",     "-",      "'",      "s",        "<",     "x",
                                          "\u00e9", "\u65e5", "\u3000", "\u0301", "\xF0\x9F", "<sep/>"};
  std::mt19937 random(29);
  std::size_t settled = 0, all = 0;
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    Vocabulary vocabulary = tiny_vocabulary(pre, {{"t", "h"},
                                                  {"th", "e"},
                                                  {" ", "the"},
                                                  {" ", " "},
                                                  {"\n", "\n"},
                                                  {"\xC3", "\xA9"},
                                                  {"'", "l"},
                                                  {"'l", "l"},
                                                  {"a", "l"}});
    add(vocabulary, "<sep/>", TokenType::user_defined);
    const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
    for (int round = 0; round < 1000; ++round) {
      std::string text;
      for (int i = 0; i < 14; ++i) text += parts[random() % parts.size()];
      const std::string begin = text.substr(0, random() % (text.size() + 1));
      const OpenEncoding open = tokenizer->encode_open(begin, Place::begins);
      ASSERT_EQ(open.ids, tokenizer->encode(begin, Specials::literal));
      std::vector<TokenId> ids(open.ids.begin(), open.ids.begin() + static_cast<std::ptrdiff_t>(open.settled_ids));
      const std::vector<TokenId> rest = tokenizer->encode(text.substr(open.settled_bytes), Specials::literal);
      ids.insert(ids.end(), rest.begin(), rest.end());
      ASSERT_EQ(ids, tokenizer->encode(text, Specials::literal)) << pre << ": " << begin << "|" << text;
      settled += open.settled_bytes, all += begin.size();
    }
  }
  EXPECT_GT(settled, all / 4);  // of these short texts
}

TEST(Bpe, AByteWithoutATokenBecomesTheReplacementCharacter) {
  Vocabulary vocabulary = tiny_vocabulary("gpt-2");
  vocabulary.types[0x04] = TokenType::unused;
  vocabulary.types[0xFF] = TokenType::unused;
  const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\x04z\xFF", Specials::literal)), "a\uFFFDz\uFFFD");
}

// Processor time, which other programs on the machine do not change as they do the time of day.
double seconds_to_encode(const Tokenizer& tokenizer, std::string_view unit, std::size_t length) {
  std::string text;
  while (text.size() < length) text += unit;
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::clock_t start = std::clock();
    const std::vector<TokenId> ids = tokenizer.encode(text, Specials::parse);
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    EXPECT_EQ(tokenizer.decode(ids).size(), text.size());
  }
  return best;
}

TEST(Bpe, OneLongRunTakesLinearTime) {
  std::vector<std::pair<std::string, std::string>> merges = {{"a", "b"}};
  for (std::string doubled = "a"; doubled.size() < 64; doubled += doubled) merges.emplace_back(doubled, doubled);
  for (std::string doubled = "ab"; doubled.size() < 64; doubled += doubled) merges.emplace_back(doubled, doubled);
  for (const char* pre : {"smollm", "llama-bpe"}) {  // the others are parts of these
    Vocabulary vocabulary = tiny_vocabulary(pre, merges);
    add(vocabulary, "<|im_start|>", TokenType::control);
    const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
    for (const char* unit : {"a", "ab", " ", "\n", " \n", "!", "<|", "7", "\u65e5", "\x80"}) {
      const double small = seconds_to_encode(*tokenizer, unit, 6250),
                   large = seconds_to_encode(*tokenizer, unit, 100000);
      // 16 times the text: n log n gives about 21, a quadratic step anywhere 256.
      EXPECT_LT(large, 80 * small) << pre << " of \"" << unit << '"';
    }
  }
}

TEST(Specials, ParsedByLongestMatchAndNeverInLiteralText) {
  Vocabulary vocabulary = tiny_vocabulary("qwen2", {{"<", "|"}, {"<|", "x"}, {"<|x", "|"}, {"<|x|", ">"}});
  const TokenId merged = 259;
  vocabulary.tokens[merged] = in_alphabet("<|x|>");
  vocabulary.types[merged] = TokenType::control;  // even a token that merges could reach
  const TokenId longer = add(vocabulary, "<|x|>>", TokenType::control);
  const TokenId word = add(vocabulary, "<w>", TokenType::user_defined);
  const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
  EXPECT_THAT(tokenizer->encode("<|x|>", Specials::parse), ElementsAre(merged));
  EXPECT_THAT(tokenizer->encode("<|x|>>", Specials::parse), ElementsAre(longer));
  EXPECT_THAT(tokenizer->encode("a<w>b", Specials::parse), ElementsAre('a', word, 'b'));
  EXPECT_THAT(tokenizer->encode("a<w>b", Specials::literal), ElementsAre('a', word, 'b'));
  const std::vector<TokenId> literal = tokenizer->encode("<|x|>>", Specials::literal);
  EXPECT_THAT(literal, testing::Each(testing::AllOf(testing::Ne(merged), testing::Ne(longer))));
  EXPECT_EQ(tokenizer->decode(literal), "<|x|>>");
}

TEST(Specials, ControlTokensAreSilentUnlessAskedFor) {
  Vocabulary vocabulary = tiny_vocabulary("gpt-2");
  const TokenId end = add(vocabulary, "<|im_end|>", TokenType::control);
  const TokenId word = add(vocabulary, "<tool_call>", TokenType::user_defined);
  const TokenId padding = add(vocabulary, "[PAD1]", TokenType::unused);
  const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
  EXPECT_EQ(tokenizer->decode({'a', end, word, padding, 5000, -1}), "a<tool_call>");
  EXPECT_EQ(tokenizer->bytes(end, true), "<|im_end|>");
}

TEST(Bos, IsAddedOnceAndOnlyWhenTheModelAsks) {
  Vocabulary vocabulary = tiny_vocabulary("llama-bpe");
  vocabulary.bos = add(vocabulary, "<|begin|>", TokenType::control);
  EXPECT_THAT(make_tokenizer(vocabulary, "test.gguf")->encode_prompt("a", Specials::parse), ElementsAre('a'));
  vocabulary.add_bos = true;
  const auto tokenizer = make_tokenizer(vocabulary, "test.gguf");
  EXPECT_THAT(tokenizer->encode_prompt("a", Specials::parse), ElementsAre(*vocabulary.bos, 'a'));
  EXPECT_THAT(tokenizer->encode_prompt("<|begin|>a", Specials::parse), ElementsAre(*vocabulary.bos, 'a'));
  EXPECT_THAT(tokenizer->encode_prompt("", Specials::parse), ElementsAre(*vocabulary.bos));
}

TEST(WholePieces, ComeFirstForLlamaOnly) {
  Vocabulary vocabulary = tiny_vocabulary("llama-bpe", {{"a", "b"}});
  const TokenId whole = add(vocabulary, "abc", TokenType::normal);  // no merge leads here
  EXPECT_THAT(make_tokenizer(vocabulary, "test.gguf")->encode("abc", Specials::literal), ElementsAre(whole));
  for (const char* pre : {"qwen2", "dbrx", "smaug-bpe"}) {
    vocabulary.pre = pre;
    EXPECT_THAT(make_tokenizer(vocabulary, "test.gguf")->encode("abc", Specials::literal), ElementsAre(256, 'c'));
  }
}

TEST(MakeTokenizer, RefusesWhatItDoesNotKnow) {
  const auto refused = [](auto change) {
    Vocabulary vocabulary = tiny_vocabulary("gpt-2", {{"a", "b"}});
    change(vocabulary);
    return error_of([&] { make_tokenizer(vocabulary, "m.gguf"); });
  };
  EXPECT_EQ(refused([](Vocabulary& v) { v.model = "bert"; }),
            "m.gguf: tokenizer.ggml.model: expected gpt2 (byte-level BPE) or llama (SentencePiece BPE), got \"bert\"");
  EXPECT_EQ(
      refused([](Vocabulary& v) { v.pre = "default"; }),
      "m.gguf: tokenizer.ggml.pre: expected one of qwen2, deepseek-r1-qwen, megrez, smollm, gpt-2, llama-bpe, llama3, "
      "llama-v3, falcon3, pixtral, dbrx, smaug-bpe, got \"default\"");
  EXPECT_EQ(refused([](Vocabulary& v) { v.types.pop_back(); }),
            "m.gguf: tokenizer.ggml.token_type: expected 257 entries, one a token, got 256");
  EXPECT_THAT(refused([](Vocabulary& v) { v.merges.push_back("ab"); }),
              HasSubstr("merges: entry 1: expected two parts"));
  EXPECT_THAT(refused([](Vocabulary& v) { v.eos = 257; }),
              HasSubstr("eos_token_id: expected an id below 257, got 257"));
  EXPECT_EQ(refused([](Vocabulary& v) { v.add_bos = true; }),
            "m.gguf: tokenizer.ggml.bos_token_id: expected an id, because add_bos_token is true; got none");
  EXPECT_THAT(refused([](Vocabulary& v) { v.tokens.clear(), v.types.clear(); }),
              HasSubstr("expected tokens, got none"));
}

TEST(EndIds, AreTheModelsOwnAndMarkedEndsOfTurn) {
  Vocabulary vocabulary = tiny_vocabulary("qwen2");
  const TokenId text = add(vocabulary, "<|endoftext|>", TokenType::control);
  const TokenId start = add(vocabulary, "<|im_start|>", TokenType::control);
  const TokenId end = add(vocabulary, "<|im_end|>", TokenType::control);
  add(vocabulary, "<|end|>", TokenType::normal);
  EXPECT_THAT(end_ids(vocabulary), ElementsAre(text, end));
  vocabulary.eos = end;
  vocabulary.eot = start;
  EXPECT_THAT(end_ids(vocabulary), ElementsAre(text, start, end));
  vocabulary.eom = 'x';
  EXPECT_THAT(end_ids(vocabulary), ElementsAre('x', text, start, end));
}

TEST(SameVocabulary, AllowsPaddingOnly) {
  const Vocabulary plain = tiny_vocabulary("qwen2", {{"a", "b"}});
  Vocabulary padded = plain;
  add(padded, "[PAD0]", TokenType::unused);
  add(padded, "[PAD1]", TokenType::unused);
  EXPECT_NO_THROW(require_same_vocabulary(plain, plain, "t", "d"));
  EXPECT_NO_THROW(require_same_vocabulary(padded, plain, "t", "d"));
  EXPECT_NO_THROW(require_same_vocabulary(plain, padded, "t", "d"));
  Vocabulary named = padded;
  named.tokens.back() = "<unused>";
  EXPECT_NO_THROW(require_same_vocabulary(padded, named, "t", "d"));
}

TEST(SameVocabulary, RefusesWithBothSizesAndTheFirstDifference) {
  const Vocabulary target = tiny_vocabulary("qwen2", {{"a", "b"}, {"c", "d"}});
  Vocabulary swapped = target;
  std::swap(swapped.tokens[256], swapped.tokens[257]);
  EXPECT_THAT(
      error_of([&] { require_same_vocabulary(target, swapped, "t.gguf", "d.gguf"); }),
      HasSubstr("d.gguf: its vocabulary of 258 tokens is not that of t.gguf (258 tokens): the first difference is "
                "id 256: expected \"ab\", got \"cd\""));
  const Vocabulary shorter = tiny_vocabulary("qwen2", {{"a", "b"}});
  EXPECT_THAT(
      error_of([&] { require_same_vocabulary(target, shorter, "t", "d"); }),
      HasSubstr("vocabulary of 257 tokens is not that of t (258 tokens): the first difference is id 257: expected "
                "\"cd\", got nothing"));
  Vocabulary unused = target;
  unused.types[97] = TokenType::unused;
  EXPECT_THAT(error_of([&] { require_same_vocabulary(target, unused, "t", "d"); }),
              HasSubstr("id 97: expected \"a\", got \"a\" (unused)"));
}

}  // namespace
}  // namespace tandem
