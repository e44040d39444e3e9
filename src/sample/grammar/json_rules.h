// How JSON is spelt, as grammar expressions and as the rules that every JSON grammar shares.
//
// The spelling is that of common writers, bounded so that a model cannot fill its answer with spaces:
// - nothing before and after the whole value; after ":" nothing or one space; after "{", "[" and ",", and before "}"
// and
//   "]" of what is not empty, nothing, one space, or a new line and up to 32 spaces;
// - a character of a string stands for itself, or is escaped: " and \ always, / also as \/, control characters as \b \f
//   \n \r \t or \uXXXX, and what lies beyond printable ASCII also as \uXXXX (a pair of them above U+FFFF); printable
//   ASCII is never spelt \uXXXX, and half of a pair never stands alone;
// - a number without bounds may have a fraction and an exponent of at most two digits; an integer has neither.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/sample/grammar/grammar.h"

namespace tandem {

// Adds rules to one grammar, each when it is first asked for. The grammar must outlive it.
class JsonRules {
 public:
  explicit JsonRules(Grammar& grammar) : grammar_(grammar) {}

  // A new rule, whose body is matched by nothing until it is set. Throws Error(config) beyond 20,000 rules.
  int add_rule(std::string name);
  void set_body(int rule, Expression body);

  // The rule of this name, with this body, made when it is first asked for; `body` may ask for the rule itself.
  Expression shared(const std::string& name, const std::function<Expression()>& body);

  Expression any_value();
  Expression object();
  Expression array();
  Expression string();
  Expression number();
  Expression integer();
  Expression boolean();
  Expression null();

  Expression comma();  // with the space after it
  Expression colon();  // with the space after it
  // `open`, `inside` and `close` with space between them; when `inside` may be absent, also `open` next to `close`.
  Expression enclosed(char open, Expression inside, bool may_be_empty, char close);

  // One code point of a string, as spelt inside it.
  Expression character();
  Expression character_in(const std::vector<CodePointRange>& ranges);
  // `text`, an expression without rules over plain text, as spelt inside a string.
  Expression escaped(const Expression& text);
  // A string of the plain text `text`.
  Expression quoted(Expression escaped_text);
  Expression quoted_text(std::string_view text);

  // Exactly this value; spaces as everywhere.
  Expression exactly(const nlohmann::ordered_json& value);

 private:
  Expression gap();
  Expression unicode_escape();
  Expression escaped_text(std::string_view text);

  Grammar& grammar_;
  std::map<std::string, int> shared_;
};

}  // namespace tandem
