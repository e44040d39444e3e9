#include "src/sample/grammar/gbnf.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "src/base/error.h"
#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/grammar_check.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

constexpr int kMostMarks = 4;                                             // of repeats behind one part
constexpr int kDeepestGroup = kDeepestExpression / (2 + kMostMarks) - 1;  // a group may take so many expressions

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Grammar parse() {
    for (skip_blank(); at_ < text_.size(); skip_blank()) rule();
    for (const auto& [name, use] : uses_) {
      if (!defined_[static_cast<std::size_t>(use.rule)]) refuse(use.at, fmt::format("rule {} does not exist", name));
    }
    const auto root = numbers_.find("root");
    if (root == numbers_.end()) refuse(text_.size(), "expected a rule named root, got none");
    grammar_.root = root->second;
    if (const auto cycle = find_left_recursion(grammar_)) {
      std::string names;
      for (const int rule : *cycle) names += grammar_.rules[static_cast<std::size_t>(rule)].name + " -> ";
      const std::string& first = grammar_.rules[static_cast<std::size_t>(cycle->front())].name;
      refuse(
          places_[static_cast<std::size_t>(cycle->front())],
          fmt::format("rule {} is left recursive ({}{}): put what it begins with in front of it", first, names, first));
    }
    return std::move(grammar_);
  }

 private:
  struct Use {
    int rule;
    std::size_t at;
  };

  [[noreturn]] void refuse(std::size_t at, std::string_view message) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = std::ranges::count(before, '\n') + 1;
    const std::size_t begin = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    const auto column = std::ranges::count_if(before.substr(begin), [](char c) { return (c & 0xC0) != 0x80; }) + 1;
    fail(ErrorKind::config, "{}:{}:{}: {}", name_, line, column, message);
  }

  std::string got() const {
    if (at_ >= text_.size()) return "the end of the file";
    if (text_[at_] == '\n' || text_[at_] == '\r') return "the end of the line";
    const Utf8Step step = utf8_step(text_.substr(at_));
    if (!step.valid) return fmt::format("byte {:02X}", static_cast<unsigned char>(text_[at_]));
    if (step.character < 0x20) return fmt::format("U+{:04X}", static_cast<std::uint32_t>(step.character));
    return std::string(text_.substr(at_, step.length));
  }
  [[noreturn]] void expected(std::string_view what) const {
    refuse(at_, fmt::format("expected {}, got {}", what, got()));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (is_name(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  int number_of(std::string_view name, std::size_t at) {
    const auto [known, is_new] = numbers_.try_emplace(std::string(name), static_cast<int>(grammar_.rules.size()));
    if (is_new) {
      if (grammar_.rules.size() == kMostRules) refuse(at, fmt::format("expected at most {} rules", kMostRules));
      grammar_.rules.push_back({std::string(name), {}});
      defined_.push_back(false);
      places_.push_back(at);
    }
    return known->second;
  }

  void rule() {
    const std::size_t begin = at_;
    const std::string_view name = word();
    if (name.empty()) expected("the name of a rule");
    skip_blank();
    if (!take("::=")) expected("::= behind the name of a rule");
    const auto number = static_cast<std::size_t>(number_of(name, begin));
    if (defined_[number]) refuse(begin, fmt::format("rule {} is given twice", name));
    defined_[number] = true;
    places_[number] = begin;
    Expression body = alternatives(0);
    if (at_ < text_.size() && !at_rule()) expected("a part of a rule, | or the next rule");
    grammar_.rules[number].body = std::move(body);
  }

  // Whether the next rule begins here.
  bool at_rule() {
    const std::size_t here = at_;
    const bool named = !word().empty();
    skip_blank();
    const bool begins = named && text_.substr(at_).starts_with("::=");
    at_ = here;
    return begins;
  }

  Expression alternatives(int depth) {
    if (depth > kDeepestGroup) refuse(at_, fmt::format("expected at most {} groups within each other", kDeepestGroup));
    std::vector<Expression> parts;
    do {
      parts.push_back(sequence(depth));
    } while (take("|"));
    return expressions::choice(std::move(parts));
  }

  Expression sequence(int depth) {
    std::vector<Expression> parts;
    for (skip_blank(); at_ < text_.size() && peek() != '|' && peek() != ')' && !at_rule(); skip_blank()) {
      parts.push_back(repeated(part(depth)));
    }
    return expressions::sequence(std::move(parts));
  }

  Expression part(int depth) {
    if (take("\"")) return literal();
    if (take("[")) return characters();
    if (take(".")) return expressions::characters(complement({}));
    if (take("(")) {
      Expression group = alternatives(depth + 1);
      if (!take(")")) expected(") at the end of a group");
      return group;
    }
    const std::size_t begin = at_;
    const std::string_view name = word();
    if (name.empty()) expected("a literal, a class, a group or the name of a rule");
    const int number = number_of(name, begin);
    uses_.try_emplace(std::string(name), Use{number, begin});
    return expressions::rule(number);
  }

  Expression repeated(Expression part) {
    for (int repeats = 0;; ++repeats) {
      skip_blank();
      if (repeats == kMostMarks) refuse(at_, fmt::format("expected less than {} repeats behind a part", kMostMarks));
      std::pair<int, int> range;
      if (take("*")) {
        range = {0, -1};
      } else if (take("+")) {
        range = {1, -1};
      } else if (take("?")) {
        range = {0, 1};
      } else if (take("{")) {
        range = counts();
      } else {
        return part;
      }
      part = expressions::repeat(std::move(part), range.first, range.second);
    }
  }

  // Behind the brace: m} m,} or m,n}
  std::pair<int, int> counts() {
    const std::size_t begin = at_;
    const int least = count();
    int most = least;
    skip_blank();
    if (take(",")) {
      skip_blank();
      most = peek() == '}' ? -1 : count();
      skip_blank();
    }
    if (!take("}")) expected("} or , in a repeat");
    if (most >= 0 && most < least) refuse(begin, fmt::format("expected a range, got {{{},{}}}", least, most));
    return {least, most};
  }

  int count() {
    skip_blank();
    if (peek() < '0' || peek() > '9') expected("a number of times");
    const std::size_t begin = at_;
    int value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + (peek() - '0');
      if (value > kMostRepetitions) refuse(begin, fmt::format("expected at most {} times", kMostRepetitions));
    }
    return value;
  }

  Expression literal() {
    std::string bytes;
    while (!take("\"")) append_utf8(bytes, character("\" at the end of a literal"));
    return expressions::literal(std::move(bytes));
  }

  Expression characters() {
    const bool negated = take("^");
    CodePoints ranges;
    while (!take("]")) {
      const std::size_t begin = at_;
      const char32_t first = character("] at the end of a class");
      char32_t last = first;
      if (text_.substr(at_).starts_with("-") && !text_.substr(at_).starts_with("-]")) {
        ++at_;
        last = character("] at the end of a class");
        if (last < first) refuse(begin, "expected a range of characters from the lower to the higher one");
      }
      ranges.push_back({first, last});
    }
    if (ranges.empty() && !negated) refuse(at_ - 1, "expected characters in a class, got none");
    return expressions::characters(negated ? complement(ranges) : normalised(std::move(ranges)));
  }

  // One character, or what an escape stands for; `end` says what should come before the end of the line.
  char32_t character(std::string_view end) {
    if (at_ >= text_.size() || peek() == '\n' || peek() == '\r') expected(end);
    if (take("\\")) return escape();
    const Utf8Step step = utf8_step(text_.substr(at_));
    if (!step.valid) expected("UTF-8");
    at_ += step.length;
    return step.character;
  }

  char32_t escape() {
    const std::size_t begin = at_ - 1;
    if (take("n")) return '\n';
    if (take("r")) return '\r';
    if (take("t")) return '\t';
    for (const auto& [letter, digits] : {std::pair{"x", 2}, std::pair{"u", 4}, std::pair{"U", 8}}) {
      if (take(letter)) return code_point(begin, digits);
    }
    constexpr std::string_view kThemselves = "\\\"[]-^";
    if (at_ < text_.size() && kThemselves.find(peek()) != kThemselves.npos) return static_cast<char32_t>(text_[at_++]);
    refuse(begin, fmt::format("unknown escape \\{}; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH and "
                              "\\UHHHHHHHH",
                              got()));
  }

  char32_t code_point(std::size_t begin, int digits) {
    std::uint64_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'                     ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : -1;
      if (digit < 0) expected(fmt::format("{} hexadecimal digits", digits));
      value = value * 16 + static_cast<std::uint64_t>(digit);
    }
    if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
      refuse(begin, fmt::format("expected a code point that is no surrogate, up to U+10FFFF, got {:X}", value));
    }
    return static_cast<char32_t>(value);
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  Grammar grammar_;
  std::map<std::string, int, std::less<>> numbers_;
  std::vector<bool> defined_;        // by rule
  std::vector<std::size_t> places_;  // by rule: where it begins, or is named first
  std::map<std::string, Use> uses_;  // the first of each name
};

}  // namespace

Grammar parse_gbnf(std::string_view text, std::string_view name) { return Parser(text, name).parse(); }

}  // namespace tandem
