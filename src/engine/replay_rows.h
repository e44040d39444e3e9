// What the models of a replay say at each place of an answer, given the rule and the size of the draft's head.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/engine/recording.h"
#include "src/engine/replay_model.h"
#include "verify/node_state.h"

namespace tandem {

// The tokens of a recording, renumbered from 0 in the order of their ids so that rows are short. Two more numbers
// follow: kNoToken of some token that was not recorded, and, last, one that stands for all that a row does not list
// and is never drawn.
class ReplayVocabulary {
 public:
  // Renumbers all tokens of the recording; those of the settings stay ids.
  explicit ReplayVocabulary(Recording& recording);

  int tokens() const { return static_cast<int>(ids_.size()); }
  TokenId no_token() const { return tokens(); }
  int row_size() const { return tokens() + 2; }
  TokenId id(TokenId number) const { return ids_[static_cast<std::size_t>(number)]; }
  std::optional<TokenId> number(TokenId id) const;  // nullopt: not in the recording
  TokenMask mask() const;                           // of what may be drawn

 private:
  void renumber(TokenId& token) const { token = *number(token); }
  void renumber(RecordedRow& row) const;
  std::vector<TokenId> ids_;  // ascending
};

// Rows of a drafting run that writes the recorded text. At temperature 0 they are the recorded rows. Above, a greedy
// engine replays what chance decided: the target's best token is the text's, and the draft's best are those it drew, in
// their order; confidences stay those of the recorded rows. Given that the text has c, a sampled child was c and
// accepted with probability min(Q(c), w P(c)) / (w P(c)), else its draw follows max(Q - w P, 0), P, Q and w being what
// NodeState makes of them from child to child. That is exact on chains under `rejection` (w = 1) and `block`, where a
// proposal's fate does not change the law of what comes after. Under `coupled` the draws are those of the position's
// noise.
class ReplayRows {
 public:
  struct Head {
    std::vector<bool> kept;  // by number: rows chosen at load
  };
  // All outlive this. `head`: null for the recorded one. `draws`: noise of what chance decides.
  ReplayRows(const RecordedAnswer& answer, const RecordingSettings& settings, const ReplayVocabulary& vocabulary,
             const std::string& rule, const Head* head, Noise draws);

  // A step begins behind this many tokens.
  void begin_step(int committed);
  void write_target(const ReplayPlace& place, std::span<float> out);
  void write_draft(const ReplayPlace& place, std::span<float> out);

 private:
  static constexpr int kMostDrawn = 4;  // children of one node

  const RecordedRow& at(const std::vector<RecordedRow>& rows, int length) const;
  bool kept(TokenId token) const;
  void write(const RecordedRow& row, bool trimmed, std::span<float> out) const;
  void put_first(std::span<const TokenId> tokens, std::span<float> out);
  const std::vector<TokenId>& drawn(int length);
  std::vector<TokenId> drawn_with_noise(int length) const;
  std::vector<TokenId> drawn_given_text(int length);
  void distributions_at(int length);
  double weight_before(int length);

  const RecordedAnswer& answer_;
  const RecordingSettings& settings_;
  const ReplayVocabulary& vocabulary_;
  bool hot_, block_, coupled_;
  const Head* head_;
  Noise draws_;
  std::unordered_map<TokenId, int> first_seen_;  // length of text before a token's first place in it
  Distribution p_, q_;                           // of the place at hand
  NodeState state_;
  std::vector<std::pair<float, TokenId>> ranked_;  // scratch of put_first()
  // of the step at hand
  int committed_ = 0;                                    // tokens when it began
  int next_ = 0;                                         // place from which on nothing has been drawn
  double weight_ = 1;                                    // of the chain up to there
  std::unordered_map<int, std::vector<TokenId>> drawn_;  // by length
};

}  // namespace tandem
