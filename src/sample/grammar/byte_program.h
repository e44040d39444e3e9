// A grammar as states over bytes: what the automaton runs.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/sample/grammar/grammar.h"
#include "src/sample/grammar/utf8_ranges.h"

namespace tandem {

struct ByteEdge {
  ByteRange range;
  int to;
};

// One state of a rule's body. From every state the rule can be finished.
struct ProgramState {
  enum class Kind : std::uint8_t {
    bytes,  // goes on with one byte, by edges()
    split,  // goes on as any of targets(), for nothing
    call,   // matches a rule from its first state `rule_start`, then goes on at `next`; next < 0: the caller's end
    end     // of the rule
  };
  Kind kind = Kind::split;
  int begin = 0, count = 0;  // of edges or targets
  int rule_start = -1, next = -1;
};

class ByteProgram {
 public:
  static constexpr int kMostStates = 1 << 20;  // repeats of a known number of times are unfolded

  // `where` begins messages, e.g. the grammar's file. Throws Error(config) as require_sound() does, for a root that no
  // text matches, and for more than kMostStates states.
  ByteProgram(const Grammar& grammar, const std::string& where);

  int size() const { return static_cast<int>(states_.size()); }
  int start() const { return start_; }  // of the root
  const ProgramState& state(int i) const { return states_[static_cast<std::size_t>(i)]; }
  std::span<const ByteEdge> edges(const ProgramState& state) const {
    return std::span(edges_).subspan(static_cast<std::size_t>(state.begin), static_cast<std::size_t>(state.count));
  }
  std::span<const int> targets(const ProgramState& state) const {
    return std::span(targets_).subspan(static_cast<std::size_t>(state.begin), static_cast<std::size_t>(state.count));
  }

  // Bytes of one class are alike in every state. `classes()` of them; class_of()[byte].
  int classes() const { return classes_; }
  std::span<const std::uint8_t, 256> class_of() const { return class_of_; }
  std::uint8_t byte_of(int byte_class) const { return byte_of_[static_cast<std::size_t>(byte_class)]; }

 private:
  friend class ProgramBuilder;
  void drop_dead_ends();
  void find_classes();

  std::vector<ProgramState> states_;
  std::vector<ByteEdge> edges_;
  std::vector<int> targets_;
  int start_ = 0;
  int classes_ = 0;
  std::array<std::uint8_t, 256> class_of_{}, byte_of_{};
};

}  // namespace tandem
