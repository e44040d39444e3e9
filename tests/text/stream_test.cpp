#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "src/base/error.h"
#include "src/text/text_stream.h"
#include "src/text/utf8.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem {
namespace {

// A vocabulary whose tokens are exactly these texts, the last one control.
std::unique_ptr<Tokenizer> tokenizer_of(const std::vector<std::string>& texts) {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  for (const std::string& text : texts) add(vocabulary, in_alphabet(text), TokenType::normal);
  add(vocabulary, "<|im_end|>", TokenType::control);
  return make_tokenizer(vocabulary, "test.gguf");
}

struct Streamed {
  std::vector<std::string> parts;  // each take(), then finish()
  std::string text;
  std::optional<StopMatch> match;
  std::string joined() const {
    std::string all;
    for (const std::string& part : parts) all += part;
    return all;
  }
};

Streamed stream(const std::vector<std::string>& tokens, std::vector<std::string> stops, bool end = true) {
  const auto tokenizer = tokenizer_of(tokens);
  const TokenId end_id = static_cast<TokenId>(tokens.size());
  TextStream text(*tokenizer, {end_id}, std::move(stops));
  Streamed result;
  for (TokenId id = 0; id < end_id + (end ? 1 : 0) && !result.match; ++id) {
    result.match = text.push(id);
    result.parts.push_back(text.take());
  }
  result.parts.push_back(text.finish());
  result.text = text.text();
  return result;
}

TEST(TextStream, KeepsTheSpacesOfTokens) {  // B10
  EXPECT_EQ(stream({"Hello", " text"}, {}).joined(), "Hello text");
  EXPECT_EQ(stream({" text"}, {}).joined(), " text");
}

TEST(TextStream, EndIdsStopAndLeaveNoText) {  // B11
  const Streamed result = stream({"a"}, {});
  ASSERT_TRUE(result.match);
  EXPECT_EQ(result.match->tokens_kept, 2);
  EXPECT_FALSE(result.match->by_string);
  EXPECT_EQ(result.text, "a");
}

TEST(TextStream, HeldBackTextThatBecomesNoStopComesOnce) {  // B13
  EXPECT_EQ(stream({" Al", "ice", "!"}, {"\n", "Alice:"}).joined(), " Alice!");
  const Streamed cut = stream({" ", "Al"}, {"\n", "Alice:"});
  EXPECT_EQ(cut.joined(), " Al");
  EXPECT_THAT(cut.parts, testing::ElementsAre(" ", "", "Al", ""));  // the end id makes the held part certain
  EXPECT_EQ(stream({"Al"}, {"Alice:"}, false).parts.back(), "Al");  // and so does finish()
}

TEST(TextStream, StopsOverTokenBordersAndKeepsTheTokensThatCompleteThem) {  // B22, B23
  const Streamed result = stream({"a", "b", "ST", "OP", "c"}, {"STOP"});
  ASSERT_TRUE(result.match);
  EXPECT_EQ(result.match->tokens_kept, 4);
  EXPECT_TRUE(result.match->by_string);
  EXPECT_EQ(result.joined(), "ab");
  EXPECT_EQ(result.text, "ab");
}

TEST(TextStream, TheEarliestMatchInTheTextWins) {
  EXPECT_EQ(stream({"x one two"}, {"two", "one"}).joined(), "x ");
  EXPECT_EQ(stream({"xabc"}, {"b", "abc"}).joined(), "x");           // one stop inside another, both complete
  EXPECT_EQ(stream({"xa", "b", "c"}, {"b", "abc"}).joined(), "xa");  // only the inner one is complete
  EXPECT_EQ(stream({"aa", "ab"}, {"ab"}).joined(), "aa");
  EXPECT_EQ(stream({"aaa", "b"}, {"aab"}).joined(), "a");
}

TEST(TextStream, CharactersSplitOverTokensComeWhole) {
  const Streamed result = stream({"\xF0\x9F", "\x98", "\x80!"}, {});
  EXPECT_THAT(result.parts, testing::ElementsAre("", "", "\xF0\x9F\x98\x80!", "", ""));
}

TEST(TextStream, AnIncompleteEndComesRawFromFinish) {
  const Streamed result = stream({"a\xE6\x97"}, {});
  EXPECT_THAT(result.parts, testing::ElementsAre("a", "", "\xE6\x97"));
  EXPECT_EQ(to_valid_utf8(result.joined()), "a\uFFFD");
}

TEST(TextStream, RefusesEmptyStopsAndTokensAfterAStop) {
  const auto tokenizer = tokenizer_of({"a"});
  EXPECT_THROW(TextStream(*tokenizer, {}, {"b", ""}), Error);
  TextStream text(*tokenizer, {}, {"a"});
  EXPECT_TRUE(text.push(0));
  EXPECT_THROW(text.push(0), Error);
}

// What the stream must do, said on whole texts: after which token it stops, and the text left.
struct Expected {
  std::string text;
  int tokens = 0;
  bool by_string = false, by_id = false;
};

Expected expected_of(const std::vector<std::string>& texts, const std::vector<TokenId>& ids,
                     const std::vector<std::string>& stops) {
  Expected expected;
  for (const TokenId id : ids) {
    ++expected.tokens;
    if (id == static_cast<TokenId>(texts.size())) {
      expected.by_id = true;
      return expected;
    }
    expected.text += texts[id];
    std::size_t earliest = std::string::npos;
    for (const std::string& stop : stops) earliest = std::min(earliest, expected.text.find(stop));
    if (earliest == std::string::npos) continue;
    expected.text.resize(earliest);
    expected.by_string = true;
    return expected;
  }
  return expected;
}

TEST(TextStream, EqualsTheWholeTextForRandomTokensAndStops) {
  const std::vector<std::string> texts = {"a",    "b",    "ab",     "ba",   "aab",      " ",     "\n",
                                          "\xC3", "\xA9", "\u00e9", "\xE6", "\x97\xA5", "a\xF0", "\x9F\x98\x80"};
  const auto tokenizer = tokenizer_of(texts);
  std::mt19937 random(3);
  int stopped = 0, held = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t kinds = round % 2 ? texts.size() : 7;  // even rounds: ASCII only
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) {
      for (int parts = 1 + static_cast<int>(random() % 3); parts > 0; --parts) stop += texts[random() % kinds];
    }
    std::vector<TokenId> ids(random() % 12);
    for (TokenId& id : ids)
      id = random() % 20 == 0 ? static_cast<TokenId>(texts.size()) : static_cast<TokenId>(random() % kinds);

    const Expected expected = expected_of(texts, ids, stops);
    TextStream stream(*tokenizer, {static_cast<TokenId>(texts.size())}, stops);
    std::optional<StopMatch> match;
    std::string joined, raw;
    int pushed = 0;
    for (const TokenId id : ids) {
      match = stream.push(id);
      ++pushed;
      if (random() % 3 != 0) {  // a reader may be slow
        const std::string part = stream.take();
        joined += part;
        // Only text of the final answer, at any time: no part of a stop string, nothing twice.
        ASSERT_TRUE(expected.text.starts_with(joined));
        if (valid_utf8_prefix(expected.text) == expected.text.size()) {
          ASSERT_EQ(valid_utf8_prefix(part), part.size());
        }
        held += joined.size() < stream.text().size();
      }
      if (match) break;
    }
    joined += stream.finish();
    ASSERT_EQ(joined, expected.text);
    ASSERT_EQ(stream.text(), expected.text);
    ASSERT_EQ(stream.finish(), "");
    ASSERT_EQ(pushed, expected.tokens);
    ASSERT_EQ(match.has_value(), expected.by_string || expected.by_id);
    if (match) {
      ++stopped;
      ASSERT_EQ(match->by_string, expected.by_string);
      ASSERT_EQ(match->tokens_kept, expected.tokens);
    }
  }
  EXPECT_GT(stopped, 1000);  // the rounds do reach both cases
  EXPECT_GT(held, 1000);
}

}  // namespace
}  // namespace tandem
