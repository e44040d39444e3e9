#include "draft/suffix_automaton.h"

#include <algorithm>
#include <bit>

namespace tandem {
namespace {

// States on the link path that learn of a new occurrence with each token. All of them would be exact, but a run of one
// token has a path as long as the run.
constexpr int kRefreshedStates = 8;
constexpr std::size_t kLeastSlots = 64;

}  // namespace

SuffixAutomaton::SuffixAutomaton(int tokens) {
  static_assert(kMostBytesAToken == 2 * sizeof(State) + 3 * sizeof(Edge) + 12 * sizeof(int));
  const std::size_t n = static_cast<std::size_t>(tokens);
  states_.reserve(2 * n + 1);
  edges_.reserve(3 * n);
  resize_table(std::bit_ceil(std::max(kLeastSlots, 6 * n)));
  add_state(0, -1, -1);
}

void SuffixAutomaton::clear() {
  states_.clear();
  edges_.clear();
  std::fill(table_.begin(), table_.end(), -1);
  last_ = size_ = 0;
  work_ = probes_ = 0;
  match_ = {};
  add_state(0, -1, -1);
}

void SuffixAutomaton::append(TokenId token) {
  const int end = size_++;
  const int whole = add_state(size_, -1, end);
  int state = last_;
  int edge = -1;
  while (state >= 0 && (edge = find_edge(state, token)) < 0) {
    add_edge(state, token, whole);
    state = states_[state].link;
  }
  last_ = whole;
  if (state < 0) {
    states_[whole].link = 0;
    match_ = {};
    return;
  }
  int next = edges_[edge].to;
  if (states_[next].length > states_[state].length + 1) {
    const int original = next;
    next = clone(original, states_[state].length + 1);
    while (state >= 0 && (edge = find_edge(state, token)) >= 0 && edges_[edge].to == original) {
      edges_[edge].to = next;
      ++work_;
      state = states_[state].link;
    }
  }
  // The whole text's link is its longest suffix that occurs elsewhere, which is the match: no second walk is needed.
  states_[whole].link = next;
  match_ = {states_[next].length, states_[next].end, next};
  for (int i = 0; i < kRefreshedStates && next > 0; ++i, next = states_[next].link) states_[next].end = end;
}

SuffixAutomaton::Match SuffixAutomaton::follow(const Match& match, TokenId token) const {
  int state = match.state, length = match.length;
  int edge = find_edge(state, token);
  for (int links = 0; edge < 0 && links < kMostLinks && (state = states_[state].link) >= 0; ++links) {
    length = states_[state].length;
    edge = find_edge(state, token);
  }
  if (edge < 0) return {};
  const int next = edges_[edge].to;
  return {length + 1, states_[next].end, next};
}

int SuffixAutomaton::clone(int state, int length) {
  const int copy = add_state(length, states_[state].link, states_[state].end);
  for (int edge = states_[state].first_edge; edge >= 0; edge = edges_[edge].next) {
    add_edge(copy, edges_[edge].token, edges_[edge].to);
  }
  states_[state].link = copy;
  return copy;
}

int SuffixAutomaton::add_state(int length, int link, int end) {
  states_.push_back({length, link, end, -1});
  return static_cast<int>(states_.size()) - 1;
}

int SuffixAutomaton::find_edge(int state, TokenId token) const { return table_[place(state, token)]; }

void SuffixAutomaton::add_edge(int from, TokenId token, int to) {
  if (2 * (edges_.size() + 1) > table_.size()) resize_table(2 * table_.size());
  const int edge = static_cast<int>(edges_.size());
  edges_.push_back({from, token, to, states_[from].first_edge});
  states_[from].first_edge = edge;
  table_[place(from, token)] = edge;
  ++work_;
}

std::size_t SuffixAutomaton::place(int state, TokenId token) const {
  const std::uint64_t key = static_cast<std::uint64_t>(state) << 32 | static_cast<std::uint32_t>(token);
  const std::size_t mask = table_.size() - 1;
  // Fibonacci hashing: the high bits of the product are the well mixed ones.
  std::size_t slot = (key ^ key >> 29) * 0x9E3779B97F4A7C15u >> 32 & mask;
  while (table_[slot] >= 0 && (edges_[table_[slot]].from != state || edges_[table_[slot]].token != token)) {
    slot = (slot + 1) & mask;
    ++probes_;
  }
  ++probes_;
  return slot;
}

void SuffixAutomaton::resize_table(std::size_t slots) {
  table_.assign(slots, -1);
  for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
    table_[place(edges_[edge].from, edges_[edge].token)] = static_cast<int>(edge);
  }
}

}  // namespace tandem
