// A grammar followed byte by byte: a pushdown automaton made deterministic as far as texts lead it.
#pragma once
#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/sample/grammar/byte_program.h"
#include "src/sample/grammar/stack_sets.h"

namespace tandem {

using ByteSet = std::bitset<256>;

// States are numbers, made when a text first leads to them; equal situations have equal numbers, so that what is known
// of a state holds wherever it comes up again. A state is the places of the program where the text so far may stand,
// each with the set of stacks that it may come back to. Rules nested deeper than StackSets::kDeepest (calls in last
// place do not count) are not followed. Not thread-safe.
class Automaton {
 public:
  static constexpr int kRefused = -1;  // nothing that begins so matches

  // Errors as ByteProgram's, and Error(config) for a grammar that only the empty text matches.
  Automaton(const Grammar& grammar, const std::string& where);

  int start() const { return start_; }
  // The state behind one more byte, or kRefused.
  int next(int state, std::uint8_t byte) {
    const int known = transitions_[static_cast<std::size_t>(state) * static_cast<std::size_t>(program_.classes()) +
                                   program_.class_of()[byte]];
    return known != kUnknown ? known : find_next(state, program_.class_of()[byte]);
  }
  // The state behind all of `bytes`, or kRefused; `state` may be kRefused.
  int after(int state, std::string_view bytes);

  bool may_end(int state) const { return states_[state].may_end; }
  // Nothing but the end may follow.
  bool complete(int state) const { return states_[state].places.empty(); }
  // The only byte that may follow, nothing when there are more or the text may end here.
  std::optional<std::uint8_t> forced(int state) const;
  // The bytes that may follow.
  ByteSet expected(int state) const;

  // Bytes that all lead from `state` to one other, `to`, the most that do. Kept once it is known.
  struct Corridor {
    ByteSet bytes;
    int to = kRefused;
    bool characters = false;  // so does every character of more than one byte
  };
  const Corridor& corridor(int state);

  // The most bytes that may still follow; nothing when there is no such number, or many states lie on the way.
  std::optional<int> longest_rest(int state);

  // Memory that states take.
  std::size_t bytes() const { return bytes_ + sets_.bytes(); }
  // Forgets all states: numbers given before mean nothing any more, and epoch() is another.
  void forget();
  int epoch() const { return epoch_; }

 private:
  static constexpr int kUnknown = -2, kEndless = -1;
  struct Place {
    int at;      // a state of the program that takes a byte
    int stacks;  // of sets_
    bool operator==(const Place&) const = default;
  };
  struct State {
    std::vector<Place> places;  // ascending
    bool may_end = false;
    bool operator==(const State&) const = default;
  };
  struct Hash {
    std::size_t operator()(const State& state) const;
  };

  void begin();
  int find_next(int state, int byte_class);
  void add(int at, int stacks);
  int close();
  int number_of(State state);
  int rest_of(int state, int& states_left);
  bool all_lead_to(int state, std::span<const ByteRange> bytes, int to);

  ByteProgram program_;
  std::vector<Utf8Ranges> long_characters_;  // encodings of more than one byte
  StackSets sets_;
  Interner<State, Hash> states_;
  std::vector<int> transitions_;  // [state, byte class]
  std::vector<std::unique_ptr<Corridor>> corridors_;
  std::vector<int> rests_;  // by state: kUnknown, kEndless or the bytes of the longest rest
  int start_ = 0;
  int epoch_ = 0;
  std::size_t bytes_ = 0;

  // of the state in the making
  std::vector<int> stacks_at_;  // by state of the program: kNothing where the text does not stand
  std::vector<bool> waits_;
  std::vector<int> waiting_, touched_;
  bool may_end_ = false;
};

}  // namespace tandem
