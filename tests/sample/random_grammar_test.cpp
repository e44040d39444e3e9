// Random grammars: the automaton against a recogniser that only follows the definition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "src/base/error.h"
#include "src/sample/grammar/automaton.h"
#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/grammar_check.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

using Kind = Expression::Kind;

// Where a match that begins at a place of the text may end, by the definition of each kind.
class Recogniser {
 public:
  Recogniser(const Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {}

  bool matches() { return ends_of_rule(grammar_.root, 0).contains(text_.size()); }

 private:
  using Places = std::set<std::size_t>;

  const Places& ends_of_rule(int rule, std::size_t at) {
    const auto known = ends_.find({rule, at});
    if (known != ends_.end()) return known->second;
    const Places found = ends(grammar_.rules[static_cast<std::size_t>(rule)].body, at);
    return ends_[{rule, at}] = found;
  }

  Places ends_of_all(const Expression& e, const Places& begins) {
    Places all;
    for (const std::size_t begin : begins) all.merge(ends(e, begin));
    return all;
  }

  Places ends(const Expression& e, std::size_t at) {
    switch (e.kind) {
      case Kind::literal:
        return text_.substr(at).starts_with(e.bytes) ? Places{at + e.bytes.size()} : Places{};
      case Kind::characters: {
        const Utf8Step step = utf8_step(text_.substr(at));
        if (!step.valid) return {};
        const bool inside = std::ranges::any_of(e.ranges, [&](const CodePointRange& range) {
          return range.first <= step.character && step.character <= range.last;
        });
        return inside != e.negated ? Places{at + step.length} : Places{};
      }
      case Kind::rule:
        return ends_of_rule(e.rule, at);
      case Kind::sequence: {
        Places places{at};
        for (const Expression& part : e.parts) places = ends_of_all(part, places);
        return places;
      }
      case Kind::choice: {
        Places places;
        for (const Expression& part : e.parts) places.merge(ends(part, at));
        return places;
      }
      case Kind::repeat:
        break;
    }
    Places places, now{at};
    std::set<Places> before;  // without a limit: until nothing new comes
    for (int times = 0; !now.empty(); ++times) {
      if (times >= e.least) places.insert(now.begin(), now.end());
      if (times == e.most || (times >= e.least && !before.insert(now).second)) break;
      now = ends_of_all(e.parts[0], now);
    }
    return places;
  }

  const Grammar& grammar_;
  std::string_view text_;
  std::map<std::pair<int, std::size_t>, Places> ends_;
};

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

// A text that finishes what was begun, found by trying; nothing within `left` bytes.
std::optional<std::string> completion(Automaton& automaton, int state, int left, std::set<int>& seen) {
  if (automaton.may_end(state)) return "";
  if (left == 0 || !seen.insert(state).second) return std::nullopt;
  for (int byte = 0; byte < 256; ++byte) {
    const int next = automaton.next(state, static_cast<std::uint8_t>(byte));
    if (next == Automaton::kRefused) continue;
    if (const auto rest = completion(automaton, next, left - 1, seen)) return static_cast<char>(byte) + *rest;
  }
  return std::nullopt;
}

TEST(RandomGrammars, AutomataMatchWhatTheDefinitionMatches) {
  const std::vector<std::string> all = texts();
  int grammars = 0, matched = 0, refused = 0, finished = 0;
  for (std::uint64_t seed = 1; grammars < 250; ++seed) {
    ASSERT_LT(seed, 5000u);
    const Grammar grammar = Writer(seed).grammar();
    if (find_left_recursion(grammar)) continue;
    std::unique_ptr<Automaton> automaton;
    try {
      automaton = std::make_unique<Automaton>(grammar, "random");
    } catch (const Error&) {  // that no text matches, or the empty one alone
      for (const std::string& text : all) {
        ASSERT_TRUE(text.empty() || !Recogniser(grammar, text).matches()) << "seed " << seed << ": " << text;
      }
      continue;
    }
    ++grammars;
    for (const std::string& text : all) {
      const int state = automaton->after(automaton->start(), text);
      const bool matches = state != Automaton::kRefused && automaton->may_end(state);
      ASSERT_EQ(matches, Recogniser(grammar, text).matches()) << "seed " << seed << ": " << text;
      ++(matches ? matched : refused);
      std::set<int> seen;
      if (state == Automaton::kRefused) continue;
      if (const auto rest = completion(*automaton, state, 8, seen)) {
        ASSERT_TRUE(Recogniser(grammar, text + *rest).matches()) << "seed " << seed << ": " << text << *rest;
        ++finished;
      }
    }
  }
  EXPECT_GT(matched, 1000);
  EXPECT_GT(refused, 1000);
  EXPECT_GT(finished, 3000);
}

}  // namespace
}  // namespace tandem
