#include "src/sample/grammar/automaton.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/error.h"

namespace tandem {

std::size_t Automaton::Hash::operator()(const State& state) const {
  std::size_t hash = state.may_end ? 1 : 0;
  for (const Place& place : state.places) {
    hash = mix_hash(hash, static_cast<std::size_t>(place.at));
    hash = mix_hash(hash, static_cast<std::size_t>(place.stacks));
  }
  return hash;
}

Automaton::Automaton(const Grammar& grammar, const std::string& where)
    : program_(grammar, where),
      long_characters_(utf8_ranges(normalised({{0x80, kLastCodePoint}}))),
      stacks_at_(static_cast<std::size_t>(program_.size()), StackSets::kNothing),
      waits_(static_cast<std::size_t>(program_.size()), false) {
  begin();
  if (start_ == kRefused || complete(start_)) {
    fail(ErrorKind::config, "{}: expected a grammar that matches more than the empty text", where);
  }
}

void Automaton::begin() {
  add(program_.start(), StackSets::kBottom);
  start_ = close();
}

void Automaton::forget() {
  states_.clear();
  sets_.clear();
  transitions_.clear();
  corridors_.clear();
  rests_.clear();
  bytes_ = 0;
  ++epoch_;
  begin();
}

// Puts the text at one more place of the program, or at one that it stands at with more to come back to.
void Automaton::add(int at, int stacks) {
  const auto place = static_cast<std::size_t>(at);
  const int before = stacks_at_[place];
  const int both = sets_.unite(before, stacks);
  if (both == before) return;
  if (before == StackSets::kNothing) touched_.push_back(at);
  stacks_at_[place] = both;
  if (waits_[place]) return;
  waits_[place] = true;
  waiting_.push_back(at);
}

// Follows all that takes no byte, and returns the state that this makes. It comes to an end because without left
// recursion no call leads to itself.
int Automaton::close() {
  while (!waiting_.empty()) {
    const int at = waiting_.back();
    waiting_.pop_back();
    waits_[static_cast<std::size_t>(at)] = false;
    const int stacks = stacks_at_[static_cast<std::size_t>(at)];
    const ProgramState& state = program_.state(at);
    if (state.kind == ProgramState::Kind::split) {
      for (const int target : program_.targets(state)) add(target, stacks);
    } else if (state.kind == ProgramState::Kind::call) {
      const int pushed = state.next < 0 ? stacks : sets_.push(stacks, state.next);
      if (pushed != StackSets::kTooDeep) add(state.rule_start, pushed);
    } else if (state.kind == ProgramState::Kind::end) {
      if (sets_.holds_empty(stacks)) may_end_ = true;
      for (std::size_t i = 0; i < sets_.tops(stacks).size(); ++i) {
        const StackSets::Top top = sets_.tops(stacks)[i];
        add(top.state, top.below);
      }
    }
  }
  State made;
  made.may_end = std::exchange(may_end_, false);
  for (const int at : touched_) {
    int& stacks = stacks_at_[static_cast<std::size_t>(at)];
    if (program_.state(at).kind == ProgramState::Kind::bytes) made.places.push_back({at, stacks});
    stacks = StackSets::kNothing;
  }
  touched_.clear();
  if (made.places.empty() && !made.may_end) return kRefused;
  std::ranges::sort(made.places, {}, &Place::at);
  return number_of(std::move(made));
}

int Automaton::number_of(State state) {
  constexpr std::size_t kOverhead = 96;
  const std::size_t classes = static_cast<std::size_t>(program_.classes());
  const std::size_t bytes = state.places.size() * sizeof(Place) + classes * sizeof(int) + kOverhead;
  const int number = states_.intern(std::move(state));
  if (static_cast<std::size_t>(number) == corridors_.size()) {
    corridors_.emplace_back();
    rests_.push_back(kUnknown);
    transitions_.resize(transitions_.size() + classes, kUnknown);
    bytes_ += bytes;
  }
  return number;
}

int Automaton::find_next(int state, int byte_class) {
  const std::uint8_t byte = program_.byte_of(byte_class);
  for (const Place& place : states_[state].places) {
    for (const ByteEdge& edge : program_.edges(program_.state(place.at))) {
      if (edge.range.first <= byte && byte <= edge.range.last) add(edge.to, place.stacks);
    }
  }
  const int next = close();
  transitions_[static_cast<std::size_t>(state) * static_cast<std::size_t>(program_.classes()) +
               static_cast<std::size_t>(byte_class)] = next;
  return next;
}

int Automaton::after(int state, std::string_view bytes) {
  for (const char byte : bytes) {
    if (state == kRefused) break;
    state = next(state, static_cast<std::uint8_t>(byte));
  }
  return state;
}

std::optional<std::uint8_t> Automaton::forced(int state) const {
  if (may_end(state)) return std::nullopt;
  std::optional<std::uint8_t> only;
  for (const Place& place : states_[state].places) {
    for (const ByteEdge& edge : program_.edges(program_.state(place.at))) {
      if (edge.range.first != edge.range.last || (only && *only != edge.range.first)) return std::nullopt;
      only = edge.range.first;
    }
  }
  return only;
}

ByteSet Automaton::expected(int state) const {
  ByteSet bytes;
  for (const Place& place : states_[state].places) {
    for (const ByteEdge& edge : program_.edges(program_.state(place.at))) {
      for (int byte = edge.range.first; byte <= edge.range.last; ++byte) bytes.set(static_cast<std::size_t>(byte));
    }
  }
  return bytes;
}

std::optional<int> Automaton::longest_rest(int state) {
  constexpr int kMostStates = 128;
  int states_left = kMostStates;
  const int rest = rest_of(state, states_left);
  return rest == kEndless ? std::nullopt : std::optional(rest);
}

// A state counts as endless while it is looked at, so that whatever leads back to it does.
int Automaton::rest_of(int state, int& states_left) {
  const auto place = static_cast<std::size_t>(state);
  if (rests_[place] != kUnknown) return rests_[place];
  rests_[place] = kEndless;
  if (--states_left < 0) return kEndless;
  int most = 0;
  for (int byte_class = 0; byte_class < program_.classes(); ++byte_class) {
    const int next_state = next(state, program_.byte_of(byte_class));
    if (next_state == kRefused) continue;
    const int rest = rest_of(next_state, states_left);
    if (rest == kEndless) return kEndless;
    most = std::max(most, rest + 1);
  }
  return rests_[place] = most;
}

// Whether each way through these ranges of bytes ends in `to`.
bool Automaton::all_lead_to(int state, std::span<const ByteRange> bytes, int to) {
  if (state == kRefused || bytes.empty()) return state == to;
  for (int byte = bytes[0].first; byte <= bytes[0].last; ++byte) {
    const auto value = static_cast<std::size_t>(byte);
    const bool is_new = byte == bytes[0].first || program_.class_of()[value] != program_.class_of()[value - 1];
    if (is_new && !all_lead_to(next(state, static_cast<std::uint8_t>(byte)), bytes.subspan(1), to)) return false;
  }
  return true;
}

const Automaton::Corridor& Automaton::corridor(int state) {
  if (const Corridor* known = corridors_[static_cast<std::size_t>(state)].get()) return *known;
  auto found = std::make_unique<Corridor>();
  std::array<int, 256> to{};
  for (std::size_t byte = 0; byte < to.size(); ++byte) to[byte] = next(state, static_cast<std::uint8_t>(byte));
  std::array<int, 256> sorted = to;
  std::ranges::sort(sorted);
  std::size_t most = 0;
  for (auto begin = std::ranges::upper_bound(sorted, kRefused); begin != sorted.end();) {
    const auto end = std::upper_bound(begin, sorted.end(), *begin);
    if (static_cast<std::size_t>(end - begin) > most) {
      most = static_cast<std::size_t>(end - begin);
      found->to = *begin;
    }
    begin = end;
  }
  for (std::size_t byte = 0; byte < to.size(); ++byte) found->bytes[byte] = most > 0 && to[byte] == found->to;
  found->characters = most > 0 && std::ranges::all_of(long_characters_, [&](const Utf8Ranges& encoding) {
                        return all_lead_to(state, encoding.span(), found->to);
                      });
  bytes_ += sizeof(Corridor);
  return *(corridors_[static_cast<std::size_t>(state)] = std::move(found));
}

}  // namespace tandem
