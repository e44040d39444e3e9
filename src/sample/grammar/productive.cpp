#include "src/sample/grammar/productive.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/least_fixpoint.h"

namespace tandem {
namespace {

using Kind = Expression::Kind;

bool is_productive(const Expression& expression, const std::vector<bool>& productive) {
  const auto part_is = [&](const Expression& part) { return is_productive(part, productive); };
  switch (expression.kind) {
    case Kind::literal:
      return true;
    case Kind::characters:
      return expression.negated || !expression.ranges.empty();
    case Kind::rule:
      return productive[static_cast<std::size_t>(expression.rule)];
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
void prune(Expression& expression, const std::vector<bool>& productive) {
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
  const auto body_of = [&grammar](int rule) -> const Expression& {
    return grammar.rules[static_cast<std::size_t>(rule)].body;
  };
  const std::vector<bool> productive = least_fixpoint(
      static_cast<int>(grammar.rules.size()), [&](int rule, auto&& visit) { visit_rules(body_of(rule), visit); },
      [&](int rule, const std::vector<bool>& known) { return is_productive(body_of(rule), known); });
  if (!productive[static_cast<std::size_t>(grammar.root)]) return false;
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
