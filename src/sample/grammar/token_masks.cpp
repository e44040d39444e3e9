#include "src/sample/grammar/token_masks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tandem {
namespace {

constexpr std::size_t kBits = 64;
const ByteSet kAscii = ~ByteSet() >> 128;

std::vector<TokenRun> runs_of(std::span<const std::uint64_t> bits) {
  std::vector<TokenRun> runs;
  for (std::size_t word = 0; word < bits.size(); ++word) {
    std::uint64_t left = bits[word];
    while (left != 0) {
      const int begin = std::countr_zero(left);
      const int length = std::countr_one(left >> begin);
      const auto first = static_cast<TokenId>(word * kBits) + begin;
      if (!runs.empty() && runs.back().end == first) {
        runs.back().end += length;
      } else {
        runs.push_back({first, first + length});
      }
      if (begin + length == static_cast<int>(kBits)) break;
      left &= ~std::uint64_t{0} << (begin + length);
    }
  }
  return runs;
}

}  // namespace

TokenMasks::TokenMasks(const Grammar& grammar, const std::string& where, std::shared_ptr<const VocabularyTrie> trie,
                       TokenMask usable, std::span<const TokenId> end_ids)
    : automaton_(grammar, where),
      trie_(std::move(trie)),
      where_(where),
      usable_(std::move(usable)),
      end_ids_(end_ids.begin(), end_ids.end()) {
  std::ranges::sort(end_ids_);
  end_ids_.erase(std::unique(end_ids_.begin(), end_ids_.end()), end_ids_.end());
  std::erase_if(end_ids_, [this](TokenId id) { return !usable_.allows(id); });
  TokenId most = end_ids_.empty() ? 0 : end_ids_.back();
  for (const TokenId id : trie_->ordered()) most = std::max(most, id);
  admitted_.resize(static_cast<std::size_t>(most) / kBits + 1);
  states_.resize(static_cast<std::size_t>(trie_->longest()) + 1);
  if (end_ids_.empty()) {
    over_ = usable_;
  } else {
    std::vector<TokenRun> runs;
    for (const TokenId id : end_ids_) runs.push_back({id, id + 1});
    over_ = TokenMask(std::move(runs));
  }
}

bool TokenMasks::ends(TokenId token) const { return std::ranges::binary_search(end_ids_, token); }

const TokenMask& TokenMasks::mask(int state) {
  if (state == kOver || automaton_.complete(state)) return over_;
  if (const auto known = masks_.find(state); known != masks_.end()) return known->second;
  TokenMask found = find(state);
  const std::size_t bytes = found.runs().size_bytes() + sizeof(TokenMask);
  if (mask_bytes_ + bytes > kMostMaskBytes) {
    masks_.clear();
    mask_bytes_ = 0;
  }
  mask_bytes_ += bytes;
  return masks_.emplace(state, std::move(found)).first->second;
}

void TokenMasks::admit(std::span<const TokenId> tokens) {
  for (const TokenId id : tokens) {
    admitted_[static_cast<std::size_t>(id) / kBits] |= std::uint64_t{1} << (static_cast<std::size_t>(id) % kBits);
  }
}

// Whether everything that the node begins fits whatever it is: its bytes, or its characters, are in the corridor of
// `state`, and in that of each state that this leads to, as far as the longest token goes. `state` is the one behind
// the node, and before a node that begins a character.
bool TokenMasks::all_fit(const VocabularyTrie::Node& node, int state) {
  const ByteSet& bytes = trie_->bytes_below(node.below);
  for (int left = node.height + (node.begins_character ? 1 : 0); left > 0; --left) {
    const Automaton::Corridor& corridor = automaton_.corridor(state);
    const ByteSet outside = bytes & ~corridor.bytes;
    const bool by_character = corridor.characters && (node.ends_character || node.begins_character);
    if (by_character ? (outside & kAscii).any() : node.begins_character || outside.any()) return false;
    if (corridor.to == state) return true;
    state = corridor.to;
  }
  return true;
}

TokenMask TokenMasks::find(int state) {
  std::ranges::fill(admitted_, 0);
  states_[0] = state;
  const std::span<const VocabularyTrie::Node> nodes = trie_->nodes();
  for (std::size_t i = 0; i < nodes.size();) {
    const VocabularyTrie::Node& node = nodes[i];
    const int before = states_[node.depth - std::size_t{1}];
    const std::span<const TokenId> tokens = trie_->ordered().subspan(
        static_cast<std::size_t>(node.tokens_begin), static_cast<std::size_t>(node.tokens_end - node.tokens_begin));
    int reached = before;
    bool whole = node.begins_character && node.below >= 0 && all_fit(node, before);
    if (!whole) {
      reached = automaton_.next(before, node.byte);
      if (reached == Automaton::kRefused) {
        i = static_cast<std::size_t>(node.end);
        continue;
      }
      whole = !node.begins_character && node.below >= 0 && all_fit(node, reached);
    }
    admit(whole ? tokens : tokens.first(node.own));
    states_[node.depth] = reached;
    i = whole ? static_cast<std::size_t>(node.end) : i + 1;
  }
  for (const TokenId id : end_ids_) {
    std::uint64_t& word = admitted_[static_cast<std::size_t>(id) / kBits];
    const std::uint64_t bit = std::uint64_t{1} << (static_cast<std::size_t>(id) % kBits);
    word = automaton_.may_end(state) ? word | bit : word & ~bit;
  }
  return TokenMask(runs_of(admitted_));
}

TokenId TokenMasks::only(int state) {
  const std::span<const TokenRun> runs = mask(state).runs();
  return runs.size() == 1 && runs[0].end - runs[0].begin == 1 ? runs[0].begin : -1;
}

bool TokenMasks::admits(int state, TokenId token) {
  if (state == kOver || automaton_.complete(state)) return over_.allows(token);
  if (ends(token)) return automaton_.may_end(state);
  const std::string_view text = trie_->text(token);
  return !text.empty() && automaton_.after(state, text) != Automaton::kRefused;
}

int TokenMasks::after(int state, TokenId token) {
  if (state == kOver || ends(token)) return kOver;
  const std::string_view text = trie_->text(token);
  return text.empty() ? kOver : automaton_.after(state, text);
}

void TokenMasks::forget() {
  automaton_.forget();
  masks_.clear();
  mask_bytes_ = 0;
}

}  // namespace tandem
