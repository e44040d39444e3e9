// A suffix automaton that grows with a text and always knows its longest suffix that has occurred before.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/types.h"

namespace tandem {

// Blumer et al. 1985. A text of n >= 3 tokens has at most 2n - 1 states and 3n - 4 edges, so appending is O(1)
// amortised in time and memory: at most kMostBytesAToken for each token of the text, which the target's context bounds.
// Edges lie in one pool, found through an open-addressing table by (state, token) and chained per state, so that a
// clone copies only its own.
class SuffixAutomaton {
 public:
  // Memory for a text of `tokens` is taken at once; a longer text grows it by doubling.
  explicit SuffixAutomaton(int tokens = 0);

  void append(TokenId token);
  // Back to the empty text; keeps all memory.
  void clear();

  // The longest suffix of the text that also occurs earlier (the two may overlap).
  struct Match {
    int length = 0;  // 0: the last token is new
    int end = -1;    // place of the last token of an earlier occurrence, the latest known one; -1 without a match
    int state = 0;   // of the automaton, for follow()
  };
  Match match() const { return match_; }
  // The match that `token` would lead to if it came next, `match` being that of what is before it. Adds nothing. Gives
  // up after kMostLinks shorter matches that nothing continues with `token`: a run of one token has as many as tokens.
  Match follow(const Match& match, TokenId token) const;

  int size() const { return size_; }  // tokens of the text
  int states() const { return static_cast<int>(states_.size()); }
  int edges() const { return static_cast<int>(edges_.size()); }
  // Edges added and moved since the last clear: at most 5 a token (3 added, 2 moved), however the text looks.
  std::int64_t work() const { return work_; }
  // Slots of the table that were looked at since the last clear.
  std::int64_t probes() const { return probes_; }
  std::size_t bytes() const {  // taken from the system
    return states_.capacity() * sizeof(State) + edges_.capacity() * sizeof(Edge) + table_.capacity() * sizeof(int);
  }
  static constexpr int kMostLinks = 64;
  static constexpr std::size_t kMostBytesAToken = 128;  // 2 states, 3 edges, 6 to 12 slots of the table

 private:
  struct State {
    int length;      // of the longest string of the state
    int link;        // state of the longest suffix that occurs in more places; -1 at the root
    int end;         // place of the last token of an occurrence, refreshed when the state is met
    int first_edge;  // head of the chain of outgoing edges, -1 at its end
  };
  struct Edge {
    int from;
    TokenId token;
    int to;
    int next;  // of the same state
  };

  int add_state(int length, int link, int end);
  int find_edge(int state, TokenId token) const;  // -1 when there is none
  void add_edge(int from, TokenId token, int to);
  int clone(int state, int length);
  std::size_t place(int state, TokenId token) const;  // slot that holds this edge, or the free one where it belongs
  void resize_table(std::size_t slots);

  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<int> table_;  // edge index or -1; a power of two, at most half full
  int last_ = 0;            // state of the whole text
  int size_ = 0;
  std::int64_t work_ = 0;
  mutable std::int64_t probes_ = 0;
  Match match_;
};

}  // namespace tandem
