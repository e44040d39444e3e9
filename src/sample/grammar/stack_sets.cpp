#include "src/sample/grammar/stack_sets.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

constexpr std::size_t kOverhead = 96;  // bytes that a set takes beside its tops

}  // namespace

std::size_t StackSets::Hash::operator()(const Node& node) const {
  std::size_t hash = node.holds_empty ? 1 : 0;
  for (const Top& top : node.tops) {
    hash = mix_hash(hash, static_cast<std::size_t>(top.state));
    hash = mix_hash(hash, static_cast<std::size_t>(top.below));
  }
  return hash;
}

StackSets::StackSets() { clear(); }

void StackSets::clear() {
  nodes_.clear();
  depths_.clear();
  unions_.clear();
  bytes_ = 0;
  intern({});
  intern({.tops = {}, .holds_empty = true});
}

int StackSets::depth_of(const Node& node) const {
  int depth = 0;
  for (const Top& top : node.tops) depth = std::max(depth, 1 + depths_[static_cast<std::size_t>(top.below)]);
  return depth;
}

int StackSets::intern(Node node) {
  const int depth = depth_of(node);
  const std::size_t bytes = node.tops.size() * sizeof(Top) + kOverhead;
  const int number = nodes_.intern(std::move(node));
  if (static_cast<std::size_t>(number) == depths_.size()) {
    depths_.push_back(depth);
    bytes_ += bytes;
  }
  return number;
}

int StackSets::push(int set, int state) {
  if (set == kNothing) return kNothing;
  if (depths_[static_cast<std::size_t>(set)] >= kDeepest) return kTooDeep;
  return intern({.tops = {{state, set}}, .holds_empty = false});
}

int StackSets::unite(int a, int b) {
  if (a == b || b == kNothing) return a;
  if (a == kNothing) return b;
  if (a > b) std::swap(a, b);
  const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  if (const auto known = unions_.find(key); known != unions_.end()) return known->second;
  const Node left = nodes_[a], right = nodes_[b];  // copies: uniting what lies below makes new nodes
  Node both;
  both.holds_empty = left.holds_empty || right.holds_empty;
  auto l = left.tops.begin(), r = right.tops.begin();
  while (l != left.tops.end() || r != right.tops.end()) {
    if (r == right.tops.end() || (l != left.tops.end() && l->state < r->state)) {
      both.tops.push_back(*l++);
    } else if (l == left.tops.end() || r->state < l->state) {
      both.tops.push_back(*r++);
    } else {
      both.tops.push_back({l->state, unite(l->below, r->below)});
      ++l, ++r;
    }
  }
  const int united = intern(std::move(both));
  unions_.emplace(key, united);
  bytes_ += sizeof(key) * 4;
  return united;
}

}  // namespace tandem
