// The automaton against a recogniser that only follows the definition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/sample/grammar/automaton.h"
#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/grammar_check.h"
#include "src/sample/grammar/json_schema.h"
#include "src/sample/grammar/productive.h"
#include "src/sample/grammar/regex.h"
#include "src/text/utf8.h"
#include "tests/sample/grammar_recogniser.h"
#include "tests/sample/grammar_sampler.h"

namespace tandem {
namespace {

using Kind = Expression::Kind;

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  Grammar grammar() {
    Grammar grammar;
    rules_ = 1 + below(4);
    for (int i = 0; i < rules_; ++i) grammar.rules.push_back({fmt::format("r{}", i), expression(3)});
    return grammar;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }

  Expression expression(int depth) {
    const int kind = below(depth > 0 ? 9 : 3);
    if (kind == 0) {
      const std::vector<std::string> texts{"", "a", "b", "ab", "é"};
      return expressions::literal(texts[static_cast<std::size_t>(below(5))]);
    }
    if (kind == 1) {
      const char32_t first = below(3) == 0 ? U'é' : U'a';
      Expression characters = expressions::characters({{first, first + static_cast<char32_t>(below(2))}});
      characters.negated = below(4) == 0;
      return characters;
    }
    if (kind == 2) return expressions::rule(below(rules_));
    Expression e;
    e.kind = kind < 5 ? Kind::sequence : kind < 7 ? Kind::choice : Kind::repeat;
    const int parts = e.kind == Kind::repeat ? 1 : 1 + below(3);
    for (int i = 0; i < parts; ++i) e.parts.push_back(expression(depth - 1));
    e.least = below(3);
    e.most = below(2) == 0 ? -1 : e.least + below(3);
    return e;
  }

  std::mt19937_64 random_;
  int rules_ = 1;
};

// All texts of up to four characters, two of which share their first byte.
std::vector<std::string> texts() {
  std::vector<std::string> all{""};
  for (std::size_t begin = 0, length = 0; length < 4; ++length) {
    const std::size_t end = all.size();
    for (; begin < end; ++begin) {
      for (const char* character : {"a", "b", "é", "ê"}) all.push_back(all[begin] + character);
    }
  }
  return all;
}

// Whether automaton and definition agree about this text, and about what it may begin.
void expect_agreement(Automaton& automaton, GrammarRecogniser& recogniser, const std::string& text) {
  const int state = automaton.after(automaton.start(), text);
  ASSERT_EQ(state != Automaton::kRefused && automaton.may_end(state), recogniser.matches(text)) << text;
  ASSERT_EQ(state != Automaton::kRefused, recogniser.begins(text)) << text;
}

TEST(RandomGrammars, AutomataMatchWhatTheDefinitionMatches) {
  const std::vector<std::string> all = texts();
  int grammars = 0, matched = 0, refused = 0;
  for (std::uint64_t seed = 1; grammars < 150; ++seed) {
    ASSERT_LT(seed, 5000u);
    SCOPED_TRACE(seed);
    Grammar grammar = Writer(seed).grammar();
    if (find_left_recursion(grammar) || !keep_productive(grammar)) continue;
    GrammarRecogniser recogniser(grammar);
    std::unique_ptr<Automaton> automaton;
    try {
      automaton = std::make_unique<Automaton>(grammar, "random");
    } catch (const Error&) {
      for (const std::string& text : all) ASSERT_TRUE(text.empty() || !recogniser.matches(text)) << text;
      continue;
    }
    ++grammars;
    for (const std::string& text : all) {
      expect_agreement(*automaton, recogniser, text);
      if (HasFatalFailure()) return;
      ++(recogniser.matches(text) ? matched : refused);
    }
  }
  EXPECT_GT(matched, 1000);
  EXPECT_GT(refused, 1000);
}

// Grammars as the front ends make them: texts of theirs, and what is left of these when a byte is lost or changed.
TEST(RandomGrammars, AutomataFollowSchemasAndRegularExpressions) {
  const auto regex = [](const char* pattern) {
    return Grammar{.rules = {{"root", regex_expression(pattern, RegexMatch::whole)}}, .root = 0};
  };
  const std::vector<Grammar> grammars{
      any_json_grammar(),
      json_schema_grammar(parse_json_schema(R"({"type": "object", "properties": {"a": {"type": "integer", "minimum": 5,
          "maximum": 130}, "b": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}, "c": {"enum": ["x", null, 2.5]}},
          "required": ["a"], "additionalProperties": false})")),
      json_schema_grammar(parse_json_schema(R"({"type": "string", "minLength": 2, "maxLength": 4})")),
      regex("(a|b)*abb|[0-9]{2,4}-\\d+|\\u00e9?x{3}"), regex("[^a-z]+(?:,\\s[^a-z]+)*\\.")};
  std::mt19937_64 random(3);
  for (const Grammar& grammar : grammars) {
    Automaton automaton(grammar, "made");
    GrammarRecogniser recogniser(grammar);
    GrammarSampler sampler(grammar, 11);
    for (int i = 0; i < 60; ++i) {
      std::string text = sampler.text(static_cast<std::size_t>(i % 30));
      ASSERT_TRUE(recogniser.matches(text)) << text;
      ASSERT_NO_FATAL_FAILURE(expect_agreement(automaton, recogniser, text));
      if (text.empty()) continue;
      const std::size_t at = random() % text.size();
      text[at] = "a\"{}[]:, 0-\\"[random() % 13];
      const bool valid = valid_utf8_prefix(text) == text.size();  // the definition is of characters
      if (valid) {
        ASSERT_NO_FATAL_FAILURE(expect_agreement(automaton, recogniser, text));
      }
    }
  }
}

}  // namespace
}  // namespace tandem
