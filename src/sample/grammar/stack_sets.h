// Sets of stacks of return states, each kept once: what a pushdown automaton may have to come back to.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/sample/grammar/interner.h"

namespace tandem {

// A set is its stacks' common top states, each with the set of what lies below it: shared between sets, merged where
// they meet, equal sets have equal numbers. So exponentially many stacks of an ambiguous grammar take linear room.
class StackSets {
 public:
  static constexpr int kNothing = 0;  // no stack at all
  static constexpr int kBottom = 1;   // the empty stack alone
  static constexpr int kTooDeep = -1;
  static constexpr int kDeepest = 1000;  // states on one stack

  struct Top {
    int state;
    int below;  // a set that holds at least one stack
    bool operator==(const Top&) const = default;
  };

  StackSets();

  // The stacks of `set`, each with `state` on top; kTooDeep where one would hold more than kDeepest.
  int push(int set, int state);
  int unite(int a, int b);
  // Ascending in state. Valid until the next push() or unite().
  std::span<const Top> tops(int set) const { return nodes_[set].tops; }
  bool holds_empty(int set) const { return nodes_[set].holds_empty; }

  std::size_t bytes() const { return bytes_; }
  void clear();

 private:
  struct Node {
    std::vector<Top> tops;
    bool holds_empty = false;
    bool operator==(const Node&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Node& node) const;
  };
  int intern(Node node);
  int depth_of(const Node& node) const;

  Interner<Node, Hash> nodes_;
  std::vector<int> depths_;  // by set: of its deepest stack
  std::unordered_map<std::uint64_t, int> unions_;
  std::size_t bytes_ = 0;
};

}  // namespace tandem
