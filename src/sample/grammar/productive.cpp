#include "src/sample/grammar/productive.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "src/sample/grammar/expression.h"

namespace tandem {
namespace {

using Kind = Expression::Kind;

bool is_productive(const Expression& expression, const std::vector<char>& productive) {
  const auto part_is = [&](const Expression& part) { return is_productive(part, productive); };
  switch (expression.kind) {
    case Kind::literal:
      return true;
    case Kind::characters:
      return expression.negated || !expression.ranges.empty();
    case Kind::rule:
      return productive[static_cast<std::size_t>(expression.rule)] != 0;
    case Kind::sequence:
      return std::all_of(expression.parts.begin(), expression.parts.end(), part_is);
    case Kind::choice:
      return std::any_of(expression.parts.begin(), expression.parts.end(), part_is);
    case Kind::repeat:
      return expression.least == 0 || part_is(expression.parts[0]);
  }
  return false;
}

// Cuts what is not productive out of `expression`, which is.
void prune(Expression& expression, const std::vector<char>& productive) {
  if (expression.kind == Kind::choice) {
    std::erase_if(expression.parts, [&](const Expression& part) { return !is_productive(part, productive); });
  }
  if (expression.kind == Kind::repeat && !is_productive(expression.parts[0], productive)) {
    expression = expressions::literal("");
  }
  for (Expression& part : expression.parts) prune(part, productive);
  if (expression.kind == Kind::choice && expression.parts.size() == 1) {
    Expression only = std::move(expression.parts[0]);
    expression = std::move(only);
  }
}

// Gives every rule that `expression` names its number in the new order, the next free one when it is new.
void renumber(Expression& expression, std::vector<int>& number_of, std::vector<int>& order) {
  if (expression.kind == Kind::rule) {
    int& number = number_of[static_cast<std::size_t>(expression.rule)];
    if (number < 0) {
      number = static_cast<int>(order.size());
      order.push_back(expression.rule);
    }
    expression.rule = number;
  }
  for (Expression& part : expression.parts) renumber(part, number_of, order);
}

}  // namespace

bool keep_productive(Grammar& grammar) {
  std::vector<char> productive(grammar.rules.size(), 0);
  for (bool found = true; found;) {
    found = false;
    // Rules are mostly made before what they refer to, so the last come first.
    for (std::size_t i = grammar.rules.size(); i-- > 0;) {
      if (productive[i] != 0 || !is_productive(grammar.rules[i].body, productive)) continue;
      productive[i] = 1;
      found = true;
    }
  }
  if (productive[static_cast<std::size_t>(grammar.root)] == 0) return false;
  std::vector<int> number_of(grammar.rules.size(), -1), order{grammar.root};
  number_of[static_cast<std::size_t>(grammar.root)] = 0;
  std::vector<GrammarRule> kept;
  for (std::size_t i = 0; i < order.size(); ++i) {
    GrammarRule rule = std::move(grammar.rules[static_cast<std::size_t>(order[i])]);
    prune(rule.body, productive);
    renumber(rule.body, number_of, order);
    kept.push_back(std::move(rule));
  }
  grammar.rules = std::move(kept);
  grammar.root = 0;
  return true;
}

}  // namespace tandem
