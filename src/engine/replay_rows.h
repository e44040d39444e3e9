// What the models of a replay say at each place of an answer, given the rule and the size of the draft's head.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/engine/recording.h"
#include "src/engine/replay_model.h"

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
// engine replays what chance decided: the target's best token is the text's, and the draft's best is the one it drew.
// Given that the text has c, a sampled draft was accepted with probability min(1, q(c) / p(c)), else its draw is that
// of max(q - p, 0): exact for `rejection`, whose acceptance does not change the law of the text. `block` has the same
// with p weighted by the w of its chain (algorithms.md section 2), exact too. Under `coupled` the draw is that of the
// position's noise. Confidences stay those of the recorded rows.
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
  void write_target(const ReplayPlace& place, std::span<float> out) const;
  void write_draft(const ReplayPlace& place, std::span<float> out);

 private:
  const RecordedRow& at(const std::vector<RecordedRow>& rows, int length) const;
  bool kept(TokenId token, int length) const;
  void write(const RecordedRow& row, int length, bool trimmed, std::span<float> out) const;
  TokenId drawn(int length);
  TokenId drawn_with_noise(const RecordedRow& q, int length) const;
  TokenId drawn_given_text(const RecordedRow& p, const RecordedRow& q, int length, double weight) const;
  double kept_mass(const RecordedRow& q, int length) const;
  double weight_before(int length);

  const RecordedAnswer& answer_;
  const RecordingSettings& settings_;
  const ReplayVocabulary& vocabulary_;
  bool hot_, block_, coupled_;
  const Head* head_;
  Noise draws_;
  std::unordered_map<TokenId, int> first_seen_;  // length of text before a token's first place in it
  // of the step at hand
  int next_ = 0;                            // place from which on nothing has been drawn
  double weight_ = 1;                       // of the chain up to there
  std::unordered_map<int, TokenId> drawn_;  // by length
};

}  // namespace tandem
