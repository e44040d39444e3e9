// Which tokens of a vocabulary an automaton admits in each of its states.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/sample/grammar/automaton.h"
#include "src/sample/grammar/vocabulary_trie.h"
#include "src/sample/token_mask.h"

namespace tandem {

// Tokens are followed byte by byte, so that one may end within a character, or take in the end of one rule and the
// beginning of the next. Masks are kept by state. Not thread-safe.
class TokenMasks {
 public:
  // Besides the automaton's states: behind an end id, behind the end of the grammar where no end id exists, or behind
  // a token that the grammar refuses. What follows does not belong to the answer.
  static constexpr int kOver = Automaton::kRefused;

  // `usable`: ids that may be drawn at all. `end_ids`: allowed where the grammar may end, and never as text. `where`
  // begins messages; errors as Automaton's.
  TokenMasks(const Grammar& grammar, const std::string& where, std::shared_ptr<const VocabularyTrie> trie,
             TokenMask usable, std::span<const TokenId> end_ids);

  Automaton& automaton() { return automaton_; }
  const VocabularyTrie& trie() const { return *trie_; }
  const std::string& where() const { return where_; }

  // What may follow in this state, kOver included: then, and where the grammar is complete, the end ids, or, when there
  // are none, all usable ids. Empty when no token of the vocabulary fits. Valid until the next call.
  const TokenMask& mask(int state);
  // The only token that may follow, -1 when there are more or none.
  TokenId only(int state);
  // Whether the text may go on with this token, and where that leads: kOver behind an end id.
  bool admits(int state, TokenId token);
  int after(int state, TokenId token);

  std::size_t bytes() const { return automaton_.bytes() + mask_bytes_; }  // that states and masks take
  // Forgets states and masks, as Automaton::forget().
  void forget();

  static constexpr std::size_t kMostMaskBytes = std::size_t{64} << 20;

 private:
  bool ends(TokenId token) const;
  TokenMask find(int state);
  void admit(std::span<const TokenId> tokens);
  bool all_fit(const VocabularyTrie::Node& node, int state);

  Automaton automaton_;
  std::shared_ptr<const VocabularyTrie> trie_;
  std::string where_;
  TokenMask usable_, over_;
  std::vector<TokenId> end_ids_;  // ascending
  std::unordered_map<int, TokenMask> masks_;
  std::size_t mask_bytes_ = 0;

  // of the mask in the making
  std::vector<std::uint64_t> admitted_;  // a bit per id
  std::vector<int> states_;              // by depth
};

}  // namespace tandem
