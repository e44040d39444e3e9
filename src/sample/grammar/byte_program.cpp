#include "src/sample/grammar/byte_program.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "src/base/error.h"
#include "src/sample/grammar/grammar_check.h"

namespace tandem {

using Kind = Expression::Kind;

// Builds each body from its end: compile(expression, next) returns the state that matches the expression and goes on at
// `next`.
class ProgramBuilder {
 public:
  ProgramBuilder(const Grammar& grammar, const std::string& where, ByteProgram& out)
      : grammar_(grammar), where_(where), out_(out), starts_(grammar.rules.size(), -1) {}

  void build() {
    out_.start_ = start_of(grammar_.root);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const Body body = waiting_[i];
      name_ = body.name;
      end_ = add({.kind = ProgramState::Kind::end});
      // A body of its own state: calls of the rule were compiled before it.
      set_targets(body.start, {compile(*body.expression, end_)});
    }
  }

 private:
  struct Body {
    int start;
    const Expression* expression;
    const std::string* name;
  };

  int add(ProgramState state) {
    if (out_.states_.size() >= ByteProgram::kMostStates) {
      fail(ErrorKind::config,
           "{}: rule {}: expected at most {} states, which a repeat of many times may take, got more", where_, *name_,
           ByteProgram::kMostStates);
    }
    out_.states_.push_back(state);
    return out_.size() - 1;
  }

  void set_targets(int state, const std::vector<int>& targets) {
    out_.states_[static_cast<std::size_t>(state)].begin = static_cast<int>(out_.targets_.size());
    out_.states_[static_cast<std::size_t>(state)].count = static_cast<int>(targets.size());
    out_.targets_.insert(out_.targets_.end(), targets.begin(), targets.end());
  }

  int split(const std::vector<int>& targets) {
    const int state = add({});
    set_targets(state, targets);
    return state;
  }

  int bytes(const std::vector<ByteEdge>& edges) {
    const int begin = static_cast<int>(out_.edges_.size());
    out_.edges_.insert(out_.edges_.end(), edges.begin(), edges.end());
    return add({.kind = ProgramState::Kind::bytes, .begin = begin, .count = static_cast<int>(edges.size())});
  }

  int body(const Expression& expression, const std::string& name) {
    const int start = add({});
    waiting_.push_back({start, &expression, &name});
    return start;
  }

  int start_of(int rule) {
    int& start = starts_[static_cast<std::size_t>(rule)];
    if (start < 0) {
      const GrammarRule& known = grammar_.rules[static_cast<std::size_t>(rule)];
      name_ = &known.name;
      start = body(known.body, known.name);
    }
    return start;
  }

  // A call in last place leaves nothing to come back to, so that lists written as recursion nest no deeper.
  int call(int rule_start, int next) {
    return add({.kind = ProgramState::Kind::call, .rule_start = rule_start, .next = next == end_ ? -1 : next});
  }

  int compile(const Expression& e, int next) {
    switch (e.kind) {
      case Kind::literal:
        for (auto byte = e.bytes.rbegin(); byte != e.bytes.rend(); ++byte) {
          const auto value = static_cast<std::uint8_t>(*byte);
          next = bytes({{{value, value}, next}});
        }
        return next;
      case Kind::characters:
        return characters(e, next);
      case Kind::rule: {
        const std::string* name = name_;
        const int start = start_of(e.rule);
        name_ = name;
        return call(start, next);
      }
      case Kind::sequence:
        for (auto part = e.parts.rbegin(); part != e.parts.rend(); ++part) next = compile(*part, next);
        return next;
      case Kind::choice: {
        std::vector<int> starts;
        for (const Expression& part : e.parts) starts.push_back(compile(part, next));
        return split(starts);
      }
      case Kind::repeat:
        return repeat(e, next);
    }
    return next;
  }

  // Encodings that end alike share the states of their last bytes.
  int characters(const Expression& e, int next) {
    std::map<std::tuple<std::uint8_t, std::uint8_t, int>, int> tails;
    std::vector<ByteEdge> first;
    for (const Utf8Ranges& encoding : utf8_ranges(e.negated ? complement(e.ranges) : normalised(e.ranges))) {
      int to = next;
      for (int i = encoding.length - 1; i > 0; --i) {
        const ByteRange range = encoding.bytes[static_cast<std::size_t>(i)];
        const auto [tail, is_new] = tails.try_emplace({range.first, range.last, to}, -1);
        if (is_new) tail->second = bytes({{range, to}});
        to = tail->second;
      }
      first.push_back({encoding.bytes[0], to});
    }
    return bytes(first);
  }

  // What is repeated a known number of times stands there as often; anything long as calls of a body of its own.
  int repeat(const Expression& e, int next) {
    const Expression& part = e.parts[0];
    const int copies = std::max(e.least, e.most);
    const bool is_short = part.kind == Kind::rule || (part.kind == Kind::literal && part.bytes.size() <= 2);
    const int start = copies > 1 && !is_short ? body(part, *name_) : -1;
    const auto once = [&](int after) { return start < 0 ? compile(part, after) : call(start, after); };
    int required = e.least;
    if (e.most < 0) {
      const int loop = add({});
      const int again = once(loop);
      set_targets(loop, {again, next});
      next = required > 0 ? again : loop;
      required -= required > 0 ? 1 : 0;
    } else {
      const int end = next;
      for (int i = e.least; i < e.most; ++i) next = split({once(next), end});
    }
    for (int i = 0; i < required; ++i) next = once(next);
    return next;
  }

  const Grammar& grammar_;
  const std::string& where_;
  ByteProgram& out_;
  std::vector<int> starts_;    // of rules, -1: not wanted so far
  std::vector<Body> waiting_;  // to be compiled
  const std::string* name_ = nullptr;
  int end_ = -1;  // of the body at hand
};

ByteProgram::ByteProgram(const Grammar& grammar, const std::string& where) {
  require_sound(grammar, where);
  ProgramBuilder(grammar, where, *this).build();
  const std::string& root = grammar.rules[static_cast<std::size_t>(grammar.root)].name;
  drop_dead_ends();
  if (start_ < 0) {
    fail(ErrorKind::config, "{}: rule {}: expected some text to match it, but none of a finite length does", where,
         root);
  }
  find_classes();
}

// Takes out every way that cannot come to an end, so that what the automaton accepts can always be finished.
void ByteProgram::drop_dead_ends() {
  std::vector<bool> live(states_.size(), false);
  const auto lives = [&](int state) { return static_cast<bool>(live[static_cast<std::size_t>(state)]); };
  const auto becomes_live = [&](const ProgramState& state) {
    switch (state.kind) {
      case ProgramState::Kind::bytes:
        return std::ranges::any_of(edges(state), lives, &ByteEdge::to);
      case ProgramState::Kind::split:
        return std::ranges::any_of(targets(state), lives);
      case ProgramState::Kind::call:
        return lives(state.rule_start) && (state.next < 0 || lives(state.next));
      case ProgramState::Kind::end:
        break;
    }
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < size(); ++i) {  // bodies are built from their end, so that one pass does nearly all
      if (lives(i) || !becomes_live(state(i))) continue;
      live[static_cast<std::size_t>(i)] = changed = true;
    }
  }
  std::vector<ByteEdge> live_edges;
  std::vector<int> live_targets;
  for (int i = 0; i < size(); ++i) {
    ProgramState& state = states_[static_cast<std::size_t>(i)];
    const ProgramState before = state;
    if (before.kind == ProgramState::Kind::bytes) {
      state.begin = static_cast<int>(live_edges.size());
      std::ranges::copy_if(edges(before), std::back_inserter(live_edges), lives, &ByteEdge::to);
      state.count = static_cast<int>(live_edges.size()) - state.begin;
    } else if (before.kind == ProgramState::Kind::split) {
      state.begin = static_cast<int>(live_targets.size());
      std::ranges::copy_if(targets(before), std::back_inserter(live_targets), lives);
      state.count = static_cast<int>(live_targets.size()) - state.begin;
    } else if (before.kind == ProgramState::Kind::call && !lives(i)) {
      state = {};  // a split without targets
    }
  }
  edges_ = std::move(live_edges);
  targets_ = std::move(live_targets);
  if (!lives(start_)) start_ = -1;
}

void ByteProgram::find_classes() {
  // Bytes between two places where edges begin or end are alike.
  std::array<bool, 257> border{};
  border[0] = true;
  for (const ByteEdge& edge : edges_) {
    border[edge.range.first] = true;
    border[static_cast<std::size_t>(edge.range.last) + 1] = true;
  }
  classes_ = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (border[static_cast<std::size_t>(byte)]) {
      byte_of_[static_cast<std::size_t>(classes_)] = static_cast<std::uint8_t>(byte);
      ++classes_;
    }
    class_of_[static_cast<std::size_t>(byte)] = static_cast<std::uint8_t>(classes_ - 1);
  }
}

}  // namespace tandem
