// GBNF: what each notation matches, and what is refused where.
#include "src/sample/grammar/gbnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/sample/grammar/automaton.h"

namespace tandem {
namespace {

// Whether the whole text matches.
bool matches(Automaton& automaton, std::string_view text) {
  const int state = automaton.after(automaton.start(), text);
  return state != Automaton::kRefused && automaton.may_end(state);
}

struct Case {
  std::string grammar;
  std::vector<std::string> matched, refused;
};

void expect(const Case& c) {
  SCOPED_TRACE(c.grammar);
  Automaton automaton(parse_gbnf(c.grammar, "test.gbnf"), "test");
  for (const std::string& text : c.matched) EXPECT_TRUE(matches(automaton, text)) << '"' << text << '"';
  for (const std::string& text : c.refused) EXPECT_FALSE(matches(automaton, text)) << '"' << text << '"';
}

TEST(Gbnf, NotationsMatchWhatTheyStandFor) {
  const std::vector<Case> cases{
      {R"(root ::= "yes" | "no")", {"yes", "no"}, {"", "y", "yesno", "Yes", "yes "}},
      {R"(root ::= [a-cx] [^a-c"] )", {"ad", "xx", "b\xC3\xA9"}, {"aa", "da", "a\"", "a", "add"}},
      {R"(root ::= "a"*)", {"", "a", "aaaa"}, {"b", "ab"}},
      {R"(root ::= "a"+)", {"a", "aaaa"}, {"", "ab"}},
      {R"(root ::= "a"?"b")", {"b", "ab"}, {"", "a", "aab"}},
      {R"(root ::= [0-9]{2})", {"00", "42"}, {"", "1", "123"}},
      {R"(root ::= [0-9]{2,})", {"00", "12345"}, {"", "1"}},
      {R"(root ::= ("ab" | "c"){1,3})", {"ab", "c", "cab", "ababab"}, {"", "abababc", "a"}},
      {R"(root ::= "x"{0,2} "y"{0} "z")", {"z", "xz", "xxz"}, {"xxxz", "yz"}},
      {R"(root ::= . "." .)", {"a.b", "\xE2\x82\xAC.\n", "..."}, {"ab", "a.", "a.bc", "\xE2\x82.a"}},
      {R"(root ::= "\n\t\r\\\"\x41\u00e9\U0001F600")", {"\n\t\r\\\"A\xC3\xA9\xF0\x9F\x98\x80"}, {"nt", ""}},
      {R"(root ::= [\]\[\-\^\\]+)", {"]", "[", "-", "^", "\\", "][-"}, {"a", ""}},
      {R"(root ::= [a-]+)", {"a", "-", "a-a"}, {"b"}},
      {R"(root ::= [^\n]*)", {"", "any text: \xE4\xBD\xA0\xE5\xA5\xBD"}, {"a\n", "\xE4\xBD", "\xFF"}},
      {R"(root ::= "é" [α-ω])", {"\xC3\xA9\xCE\xB1", "\xC3\xA9\xCF\x89"}, {"\xC3\xA9\xCF\x8A", "e\xCE\xB1"}},
      {R"(root ::= ( "a" ( "b" | ) )* )", {"", "a", "ab", "aab"}, {"b", "abb"}},
      {"root ::= \"\" \"a\" \"\"", {"a"}, {"", "aa"}},
      {"root ::= (\"a\"?)* \"b\"", {"b", "aab"}, {"", "a"}},
  };
  for (const Case& c : cases) expect(c);
}

TEST(Gbnf, RulesGoOnOverLinesUntilTheNextOneBegins) {
  expect({R"(# a list of names
root ::= item
  ("," item)*   # as many as there are
  | "none"
item ::=
  name-1 | digit_2

name-1 ::= [a-z]+
digit_2::=[0-9])",
          {"none", "abc", "abc,1,x", "7"},
          {"", "abc,", "12", ",a"}});
}

TEST(Gbnf, RecursionNestsAnyText) {
  expect({R"g(root ::= "(" root ")" | "[" root "]" | "")g", {"", "()", "([()])", "[[]]"}, {"(", "(]", "())", "[(])"}});
  expect({R"(root ::= value
value ::= "{" pairs? "}" | "[" values? "]" | string | "true" | "null"
pairs ::= pair ("," pair)*
pair ::= string ":" value
values ::= value ("," value)*
string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt])* "\"")",
          {"true", "{}", R"({"a":[true],"b":null})", R"(["a",{"b":["\n"]}])"},
          {"{", R"({"a"})", "[,]", R"("a)", "nul", "[1]"}});
}

TEST(Gbnf, ErrorsNameLineAndColumn) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "a.gbnf:1:1: expected a rule named root, got none"},
      {"top ::= \"a\"", "a.gbnf:1:12: expected a rule named root, got none"},
      {"root = \"a\"", "a.gbnf:1:6: expected ::= behind the name of a rule, got ="},
      {"root ::= \"a\" |\n  word\n", "a.gbnf:2:3: rule word does not exist"},
      {"root ::= \"a", "a.gbnf:1:12: expected \" at the end of a literal, got the end of the file"},
      {"root ::= \"a\n\"", "a.gbnf:1:12: expected \" at the end of a literal, got the end of the line"},
      {"root ::= [a-", "a.gbnf:1:13: expected ] at the end of a class, got the end of the file"},
      {"root ::= [z-a]", "a.gbnf:1:11: expected a range of characters from the lower to the higher one"},
      {"root ::= []", "a.gbnf:1:11: expected characters in a class, got none"},
      {"root ::= (\"a\"", "a.gbnf:1:14: expected ) at the end of a group, got the end of the file"},
      {"root ::= \"a\" )", "a.gbnf:1:14: expected a part of a rule, | or the next rule, got )"},
      {"root ::= \"a\"{3,2}", "a.gbnf:1:14: expected a range, got {3,2}"},
      {"root ::= \"a\"{x}", "a.gbnf:1:14: expected a number of times, got x"},
      {"root ::= \"a\"{1", "a.gbnf:1:15: expected } or , in a repeat, got the end of the file"},
      {"root ::= \"a\"{999999}", "a.gbnf:1:14: expected at most"},
      {"root ::= \"\\q\"", "a.gbnf:1:11: unknown escape \\q"},
      {"root ::= \"\\x4\"", "a.gbnf:1:14: expected 2 hexadecimal digits, got \""},
      {"root ::= \"\\ud800\"", "a.gbnf:1:11: expected a code point that is no surrogate, up to U+10FFFF, got D800"},
      {"root ::= \"\\U00110000\"", "a.gbnf:1:11: expected a code point"},
      {"root ::= \"a\"\nroot ::= \"b\"", "a.gbnf:2:1: rule root is given twice"},
      {"root ::= \"\xC3\xA9\" \xC3",
       "a.gbnf:1:14: expected a literal, a class, a group or the name of a rule, got byte C3"},
      {"root ::= \"a\" ?? ?? ?", "a.gbnf:1:20: expected less than 4 repeats behind a part"},
      {"root ::= " + std::string(1000, '('), "groups within each other"},
      {"root ::= %", "a.gbnf:1:10: expected a literal, a class, a group or the name of a rule, got %"},
  };
  for (const auto& [text, message] : cases) {
    try {
      parse_gbnf(text, "a.gbnf");
      ADD_FAILURE() << "read: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(message)) << text;
    }
  }
}

TEST(Gbnf, LeftRecursionIsRefusedWithItsRules) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"root ::= root \"a\" | \"b\"", "a.gbnf:1:1: rule root is left recursive (root -> root)"},
      {"root ::= a\na ::= b \"x\"\nb ::= \"y\" | a", "a.gbnf:2:1: rule a is left recursive (a -> b -> a)"},
      {"root ::= blank root \"a\" | \"b\"\nblank ::= \" \"*", "rule root is left recursive (root -> root)"},
      {"root ::= \"\" (\"x\"? | \"y\"{0,3}) root \"a\"", "rule root is left recursive"},
      {"root ::= (\"a\" | root)+ \"b\"", "rule root is left recursive"},
  };
  for (const auto& [text, message] : cases) {
    try {
      parse_gbnf(text, "a.gbnf");
      ADD_FAILURE() << "read: " << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(message)) << text;
    }
  }
  EXPECT_NO_THROW(parse_gbnf("root ::= \"a\" root | root-end{0}\nroot-end ::= \"x\"", "a.gbnf"));
  EXPECT_NO_THROW(parse_gbnf("root ::= \"a\" (root)? \"b\"", "a.gbnf"));
}

TEST(Gbnf, GrammarsThatMatchNoFiniteTextAreRefused) {
  const auto message = [](const std::string& grammar) -> std::string {
    try {
      Automaton automaton(parse_gbnf(grammar, "a.gbnf"), "constraint.grammar");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("root ::= \"a\" root"), ::testing::HasSubstr("rule root: expected some text to match it"));
  EXPECT_THAT(message("root ::= a b\na ::= \"x\" b\nb ::= \"y\" a"), ::testing::HasSubstr("none of a finite length"));
  EXPECT_THAT(message("root ::= \"\"*"), ::testing::HasSubstr("more than the empty text"));
  EXPECT_THAT(message("root ::= \"\" | (\"a\" root-2) \nroot-2 ::= \"b\" root-2"),
              ::testing::HasSubstr("more than the empty text"));
  EXPECT_THAT(message("root ::= ((\"a\"{1000}){1000}){1000} \"b\"{9000}"), "");
}

}  // namespace
}  // namespace tandem
