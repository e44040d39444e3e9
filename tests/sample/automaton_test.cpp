// The automaton: states, stacks and bytes.
#include "src/sample/grammar/automaton.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "src/base/error.h"
#include "src/sample/grammar/gbnf.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

struct Followed {
  explicit Followed(const std::string& grammar) : automaton(parse_gbnf(grammar, "test.gbnf"), "test") {}
  int after(std::string_view text) { return automaton.after(automaton.start(), text); }
  bool matches(std::string_view text) {
    const int state = after(text);
    return state != Automaton::kRefused && automaton.may_end(state);
  }
  Automaton automaton;
};

TEST(Automaton, EqualSituationsAreOneState) {
  Followed json(R"(root ::= "[" list? "]"
list ::= item ("," item)*
item ::= root | "\"" [^"\\]* "\"" | [0-9]+)");
  EXPECT_EQ(json.after("[\"a"), json.after("[\"abcd"));
  EXPECT_EQ(json.after("[1,2,3,"), json.after("[\"x\","));
  EXPECT_EQ(json.after("[[],[1,["), json.after("[5,[["));
  EXPECT_NE(json.after("["), json.after("[["));
  EXPECT_NE(json.after("[[]"), json.after("[[]]"));
}

// Lists written as recursion in last place nest no deeper, however long they grow.
TEST(Automaton, RecursionInLastPlaceComesBackToTheSameState) {
  Followed lines("root ::= line root?\nline ::= [a-z]+ \"\\n\"");
  const int one = lines.after("abc\n");
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ab\n";
  EXPECT_EQ(lines.after(text), one);
}

// After n letters 2^n stacks are possible; they share all but their tops.
TEST(Automaton, ExponentiallyManyStacksTakeLinearRoom) {
  Followed twofold(R"(root ::= "a" root "x" | "a" root "y" | "b")");
  const std::string front = std::string(300, 'a') + "b";
  EXPECT_NE(twofold.after(front), Automaton::kRefused);
  std::string back;
  for (int i = 0; i < 300; ++i) back += i % 3 == 0 ? 'x' : 'y';
  EXPECT_TRUE(twofold.matches(front + back));
  EXPECT_FALSE(twofold.matches(front + back + "x"));
  EXPECT_FALSE(twofold.matches(front + back.substr(1)));
  EXPECT_LT(twofold.automaton.bytes(), std::size_t{1} << 20);
}

TEST(Automaton, AmbiguousTextsKeepEveryWay) {
  Followed palindrome(R"(root ::= "a" root "a" | "b" root "b" | [ab]?)");
  EXPECT_TRUE(palindrome.matches("abba"));
  EXPECT_TRUE(palindrome.matches("ababa"));
  EXPECT_TRUE(palindrome.matches("aabbaabbaa"));
  EXPECT_FALSE(palindrome.matches("abb"));
  EXPECT_FALSE(palindrome.matches("aab"));
}

TEST(Automaton, NestingEndsAtItsLimit) {
  Followed nested(R"g(root ::= "(" root ")" | "x")g");
  const auto depth = static_cast<std::size_t>(StackSets::kDeepest);
  EXPECT_TRUE(nested.matches(std::string(depth, '(') + "x" + std::string(depth, ')')));
  EXPECT_EQ(nested.after(std::string(depth + 1, '(')), Automaton::kRefused);
}

TEST(Automaton, WaysWithoutAnEndAreNotTaken) {
  Followed some(R"(root ::= "a" | "b" endless | "c" (endless | "d")
endless ::= "x" endless)");
  EXPECT_TRUE(some.matches("a"));
  EXPECT_EQ(some.after("b"), Automaton::kRefused);
  EXPECT_TRUE(some.matches("cd"));
  EXPECT_EQ(some.after("cx"), Automaton::kRefused);
}

// Every code point inside and outside of a class, and bytes that are no UTF-8.
TEST(Automaton, ClassesTakeTheirCodePointsAndNoOtherBytes) {
  Followed inside(
      R"(root ::= [\x00-\u0085\u07fe-\u0801\ud7f0-\ud7ff\ue000-\ue001\uffef-\U00010010\U0010fff0-\U0010ffff])");
  Followed outside(
      R"(root ::= [^\x00-\u0085\u07fe-\u0801\ud7f0-\ud7ff\ue000-\ue001\uffef-\U00010010\U0010fff0-\U0010ffff])");
  const auto in_class = [](char32_t c) {
    return c <= 0x85 || (c >= 0x7FE && c <= 0x801) || (c >= 0xD7F0 && c <= 0xD7FF) || c == 0xE000 || c == 0xE001 ||
           (c >= 0xFFEF && c <= 0x10010) || c >= 0x10FFF0;
  };
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(inside.matches(text), in_class(c)) << std::hex << static_cast<std::uint32_t>(c);
    ASSERT_EQ(outside.matches(text), !in_class(c)) << std::hex << static_cast<std::uint32_t>(c);
  }
  Followed any("root ::= .*");
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                "\xF4\x90\x80\x80", "\xF5", "\xFF", "\xE2\x82"}) {
    EXPECT_FALSE(any.matches(bad)) << static_cast<int>(static_cast<unsigned char>(bad[0]));
  }
}

TEST(Automaton, ForcedBytesAreTheOnlyOnes) {
  Followed g(R"(root ::= "name: " [a-z]+ ("." | ";") | "none")");
  EXPECT_EQ(g.automaton.forced(g.automaton.start()), 'n');
  EXPECT_EQ(g.automaton.forced(g.after("n")), std::nullopt);
  EXPECT_EQ(g.automaton.forced(g.after("na")), 'm');
  EXPECT_EQ(g.automaton.forced(g.after("name: ")), std::nullopt);
  EXPECT_EQ(g.automaton.forced(g.after("none")), std::nullopt);
  EXPECT_TRUE(g.automaton.complete(g.after("none")));
  EXPECT_TRUE(g.automaton.complete(g.after("name: x;")));
  Followed open(R"(root ::= "a" "b"?)");
  EXPECT_EQ(open.automaton.forced(open.after("a")), std::nullopt) << "the text may end there";
  EXPECT_EQ(open.automaton.expected(open.after("a")).to_string().find('1'), 255u - 'b');
}

TEST(Automaton, TheLongestRestIsThatOfTheLongestText) {
  Followed g(R"(root ::= "yes" | "no" | "per" ("haps" | [a-c]{0,7}) "é"?)");
  EXPECT_EQ(g.automaton.longest_rest(g.automaton.start()), 12);
  EXPECT_EQ(g.automaton.longest_rest(g.after("y")), 2);
  EXPECT_EQ(g.automaton.longest_rest(g.after("no")), 0);
  EXPECT_EQ(g.automaton.longest_rest(g.after("perabc")), 6);
  Followed endless(R"(root ::= "a" [b]* | "c" [d]{1,1000} | "e" "f")");
  EXPECT_EQ(endless.automaton.longest_rest(endless.automaton.start()), std::nullopt);
  EXPECT_EQ(endless.automaton.longest_rest(endless.after("ab")), std::nullopt);
  EXPECT_EQ(endless.automaton.longest_rest(endless.after("cd")), std::nullopt) << "too far to look";
  EXPECT_EQ(endless.automaton.longest_rest(endless.after("e")), 1);
}

TEST(Automaton, ForgettingBeginsAnew) {
  Followed g("root ::= \"(\" root \")\" | [a-z]{1,9}");
  const int before = g.after("((abc");
  const int epoch = g.automaton.epoch();
  g.automaton.forget();
  EXPECT_NE(g.automaton.epoch(), epoch);
  EXPECT_TRUE(g.matches("((abc))"));
  EXPECT_FALSE(g.matches("((abc)"));
  EXPECT_GT(before, 0);
}

TEST(Automaton, CorridorsHoldTheBytesOfTheCommonestNextState) {
  Followed g(R"(root ::= "\"" ([^"\\\x00-\x1f] | "\\" .)* "\"")");
  const int inside = g.after("\"ab");
  const Automaton::Corridor& corridor = g.automaton.corridor(inside);
  EXPECT_EQ(corridor.to, inside);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(corridor.bytes[static_cast<std::size_t>(byte)],
              g.automaton.next(inside, static_cast<std::uint8_t>(byte)) == inside)
        << byte;
  }
}

}  // namespace
}  // namespace tandem
