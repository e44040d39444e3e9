#include "src/sample/grammar/grammar_check.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "src/base/error.h"

namespace tandem {
namespace {

using Kind = Expression::Kind;

void require_sound(const Grammar& grammar, const Expression& expression, int depth, const std::string& where,
                   const std::string& rule) {
  if (depth > kDeepestExpression) {
    fail(ErrorKind::config, "{}: rule {}: expected at most {} parts within each other, got more", where, rule,
         kDeepestExpression);
  }
  const auto rules = static_cast<int>(grammar.rules.size());
  if (expression.kind == Kind::rule && (expression.rule < 0 || expression.rule >= rules)) {
    fail(ErrorKind::config, "{}: rule {}: expected the number of one of {} rules, got {}", where, rule, rules,
         expression.rule);
  }
  if (expression.kind == Kind::repeat) {
    const bool range = expression.least >= 0 && (expression.most < 0 || expression.most >= expression.least);
    if (!range || expression.parts.size() != 1) {
      fail(ErrorKind::config, "{}: rule {}: expected one part repeated some range of times, got {} parts and {{{},{}}}",
           where, rule, expression.parts.size(), expression.least, expression.most);
    }
  }
  for (const Expression& part : expression.parts) require_sound(grammar, part, depth + 1, where, rule);
}

class LeftEdges {
 public:
  explicit LeftEdges(const Grammar& grammar) : grammar_(grammar), nullable_(grammar.rules.size(), false) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < nullable_.size(); ++i) {
        if (nullable_[i] || !nullable(grammar.rules[i].body)) continue;
        nullable_[i] = changed = true;
      }
    }
  }

  // Rules that the text of this one may begin with.
  std::vector<int> of(int rule) const {
    std::vector<int> out;
    collect(grammar_.rules[static_cast<std::size_t>(rule)].body, out);
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

 private:
  bool nullable(const Expression& e) const {
    const auto is_nullable = [this](const Expression& part) { return nullable(part); };
    switch (e.kind) {
      case Kind::literal:
        return e.bytes.empty();
      case Kind::characters:
        return false;
      case Kind::rule:
        return nullable_[static_cast<std::size_t>(e.rule)];
      case Kind::sequence:
        return std::ranges::all_of(e.parts, is_nullable);
      case Kind::choice:
        return std::ranges::any_of(e.parts, is_nullable);
      case Kind::repeat:
        return e.least == 0 || nullable(e.parts[0]);
    }
    return false;
  }

  void collect(const Expression& e, std::vector<int>& out) const {
    if (e.kind == Kind::rule) return out.push_back(e.rule);
    if (e.kind == Kind::repeat && e.most == 0) return;
    for (const Expression& part : e.parts) {
      collect(part, out);
      if (e.kind == Kind::sequence && !nullable(part)) return;
    }
  }

  const Grammar& grammar_;
  std::vector<bool> nullable_;
};

}  // namespace

// Depth first with a stack of its own, because chains of rules may be long.
std::optional<std::vector<int>> find_left_recursion(const Grammar& grammar) {
  const LeftEdges edges(grammar);
  enum class Seen : char { no, on_path, done };
  std::vector<Seen> seen(grammar.rules.size(), Seen::no);
  struct Visit {
    int rule;
    std::vector<int> next;
    std::size_t at = 0;
  };
  std::vector<Visit> path;
  const auto enter = [&](int rule) {
    seen[static_cast<std::size_t>(rule)] = Seen::on_path;
    path.push_back({rule, edges.of(rule)});
  };
  for (int first = 0; first < static_cast<int>(grammar.rules.size()); ++first) {
    if (seen[static_cast<std::size_t>(first)] != Seen::no) continue;
    enter(first);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.at == visit.next.size()) {
        seen[static_cast<std::size_t>(visit.rule)] = Seen::done;
        path.pop_back();
        continue;
      }
      const int next = visit.next[visit.at++];
      const Seen state = seen[static_cast<std::size_t>(next)];
      if (state == Seen::no) enter(next);
      if (state != Seen::on_path) continue;
      const auto begin = std::ranges::find(path, next, &Visit::rule);
      std::vector<int> cycle;
      std::transform(begin, path.end(), std::back_inserter(cycle), [](const Visit& v) { return v.rule; });
      return cycle;
    }
  }
  return std::nullopt;
}

void require_sound(const Grammar& grammar, const std::string& where) {
  const auto rules = static_cast<int>(grammar.rules.size());
  if (rules == 0 || rules > kMostRules) {
    fail(ErrorKind::config, "{}: expected 1..{} rules, got {}", where, kMostRules, rules);
  }
  if (grammar.root < 0 || grammar.root >= rules) {
    fail(ErrorKind::config, "{}: expected a root among {} rules, got number {}", where, rules, grammar.root);
  }
  for (const GrammarRule& rule : grammar.rules) require_sound(grammar, rule.body, 0, where, rule.name);
  const std::optional<std::vector<int>> cycle = find_left_recursion(grammar);
  if (!cycle) return;
  const auto name = [&](int rule) -> const std::string& { return grammar.rules[static_cast<std::size_t>(rule)].name; };
  std::vector<std::string> names;
  for (const int rule : *cycle) names.push_back(name(rule));
  names.push_back(name(cycle->front()));
  fail(ErrorKind::config, "{}: rule {}: expected no left recursion, but it may begin with itself ({})", where,
       names.front(), fmt::join(names, " -> "));
}

}  // namespace tandem
