// The draft's part of a recording: its rows along the text, and what it would have drafted where it was wrong.
#pragma once
#include <span>
#include <vector>

#include "src/engine/recording.h"
#include "src/model/language_model.h"
#include "src/sample/context.h"

namespace tandem {

// A row as it is recorded. `chosen`: what the sampler's chain makes of it; `usable`: tokens that may be drawn;
// `wanted`: tokens that must not be missing. Greedy: the row's own logits.
RecordedRow recorded_row(std::span<const float> logits, const Distribution& chosen, bool greedy,
                         const TokenMask& usable, std::span<const TokenId> wanted);

class DraftRecorder {
 public:
  // `model` outlives this. `sampler`: as the drafter's.
  DraftRecorder(LanguageModel& model, KvType kv_type, Sampler sampler, int longest);

  // A new text begins with this prompt.
  void begin(std::span<const TokenId> prompt, RecordedAnswer& answer);
  // `text` ends with a newly committed token, `before` holds what is before it: records the draft's row about it.
  void note(const Context& before, TokenId committed, RecordedAnswer& answer);
  // Times passes of several rows behind the text.
  void time_passes(RecordedAnswer& answer);

 private:
  std::span<const float> feed(std::span<const TokenId> tokens);
  TokenId best(const Context& context, std::span<const float> logits);
  RecordedBranch branch(Context& context, TokenId wrong, RecordedAnswer& answer);
  RecordedRow row(std::span<const float> logits, TokenId wanted) const;

  LanguageModel& model_;
  Sampler sampler_;
  int longest_;
  KvCache cache_;  // holds the text but for its last token
  std::vector<Position> positions_;
  std::vector<TokenId> any_;  // tokens for passes that are only timed
  Context path_;              // the text and a branch
  Distribution distribution_;
};

}  // namespace tandem
