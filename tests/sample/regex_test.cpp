#include "src/sample/grammar/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "tests/sample/grammar_recogniser.h"

namespace tandem {
namespace {

using ::testing::StartsWith;

bool matches(const std::string& pattern, const std::string& text, RegexMatch match = RegexMatch::whole) {
  const Grammar grammar{{{"root", regex_expression(pattern, match)}}, 0};
  return GrammarRecogniser(grammar).matches(text);
}

TEST(Regex, MatchesTheWholeText) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> matching{
      {"", {""}},
      {"abc", {"abc"}},
      {"a|bc|", {"a", "bc", ""}},
      {"(a|b)*c", {"c", "abac"}},
      {"(?:ab)+?|(?<n>x)", {"ab", "abab", "x"}},
      {"a{2}b{1,}c{0,2}", {"aab", "aabbcc"}},
      {"[a-c_\\-\\]]+", {"b_-]"}},
      {"[^a-z]", {"A", "é", "\n"}},
      {"[-a]|[b-]", {"-", "a", "b"}},
      {"\\d\\w\\s\\D\\W\\S", {"1_ x-y"}},
      {"\\.\\/\\{\\}\\[\\]\\(\\)\\\\\\^\\$", {"./{}[]()\\^$"}},
      {"\\n\\r\\t\\f\\v\\x41\\u00e9\\u{1F600}\\ud83d\\ude00\\cA", {"\n\r\t\f\vAé😀😀\x01"}},
      {".", {"x", "😀"}},
      {"^a$|^b", {"a", "b"}},
      {"[\\d\\b]", {"7", "\b"}},
      {"(a*)*(b?)+", {"", "aab"}}};
  for (const auto& [pattern, texts] : matching) {
    for (const std::string& text : texts) EXPECT_TRUE(matches(pattern, text)) << pattern << " " << text;
  }
  const std::vector<std::pair<std::string, std::vector<std::string>>> others{
      {"", {"a"}},           {"abc", {"ab", "abcd"}},   {"a{2,3}", {"a", "aaaa"}},
      {"[^a-z]", {"a", ""}}, {".", {"\n", "\r", "ab"}}, {"\\d", {"x", "٣"}},
      {"\\w", {"é"}},        {"\\S", {"\xC2\xA0"}},     {"^a$", {"ab"}}};
  for (const auto& [pattern, texts] : others) {
    for (const std::string& text : texts) EXPECT_FALSE(matches(pattern, text)) << pattern << " " << text;
  }
}

TEST(Regex, SearchFindsAMatchAnywhereUnlessHeld) {
  EXPECT_TRUE(matches("b", "abc", RegexMatch::search));
  EXPECT_TRUE(matches("b", "\nb\n", RegexMatch::search));
  EXPECT_FALSE(matches("^b", "ab", RegexMatch::search));
  EXPECT_TRUE(matches("^b", "ba", RegexMatch::search));
  EXPECT_FALSE(matches("b$", "ba", RegexMatch::search));
  EXPECT_TRUE(matches("^a|b$", "xb", RegexMatch::search));
  EXPECT_FALSE(matches("^a|b$", "xa", RegexMatch::search));
  EXPECT_TRUE(matches("", "anything", RegexMatch::search));
}

TEST(Regex, ErrorsNameTheCharacter) {
  const std::vector<std::pair<std::string, std::string>> faults{
      {"a(b", "regex: character 4 (the end of the pattern): expected ) or |"},
      {"a)b", "regex: character 2 (')'): ) closes no group"},
      {"*a", "regex: character 1 ('*'): there is nothing to repeat"},
      {"a**", "regex: character 3 ('*'): a repetition cannot be repeated"},
      {"é[a", "regex: character 2 ('['): this set has no end"},
      {"[]", "regex: character 2 (']'): an empty set is not supported"},
      {"[b-a]", "regex: character 2 ('b'): the range's end"},
      {"[\\d-a]", "regex: character 2 ('\\'): a range cannot start here"},
      {"(?=a)", "regex: character 3 ('='): look-around and flags are not supported"},
      {"(?i)a", "regex: character 3 ('i'): look-around and flags are not supported"},
      {"(?<!a)", "regex: character 3 ('<'): look-around and flags are not supported"},
      {"(a)\\1", "regex: character 5 ('1'): this escape is not supported"},
      {"\\bword", "regex: character 2 ('b'): this escape is not supported"},
      {"\\p{L}", "regex: character 2 ('p'): this escape is not supported"},
      {"\\", "regex: character 2 (the end of the pattern): expected a character after the backslash"},
      {"\\ud800", "regex: character 2 ('u'): half of a surrogate pair is no character"},
      {"\\u{110000}", "regex: character 2 ('u'): expected a code point up to 10FFFF"},
      {"a{", "regex: character 3 (the end of the pattern): expected a count"},
      {"a{3,2}", "regex: character 2 ('{'): the repetition's least count is above its most"},
      {"a{10001}", "regex: character 3 ('1'): a repetition of more than 10,000 times"},
      {"a{99999999999999999999}", "regex: character 3 ('9'): a repetition of more than 10,000 times"},
      {"a^b", "regex: character 2 ('^'): ^ is supported only at the start"},
      {"a$b", "regex: character 2 ('$'): $ is supported only at the end"},
      {"(a$)", "regex: character 3 ('$'): $ is supported only at the end"},
      {"a}", "regex: character 2 ('}'): expected a backslash in front of it"},
      {"\xff", "regex: character 1 is not UTF-8"}};
  for (const auto& [pattern, message] : faults) {
    try {
      regex_expression(pattern, RegexMatch::whole);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      EXPECT_THAT(error.what(), StartsWith(message)) << pattern;
    }
  }
}

}  // namespace
}  // namespace tandem
