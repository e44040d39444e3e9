// Predicts speed and acceptance of other settings from a recording, without a model.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/base/metrics.h"
#include "src/engine/recording.h"
#include "src/engine/replay_costs.h"
#include "src/engine/replay_rows.h"

namespace tandem {

// What may be otherwise than in the recorded run.
struct ReplaySetting {
  std::string kind;           // none, ngram, model, hybrid
  std::optional<int> length;  // nullopt: auto
  double min_probability = 0;
  std::string rule = "rejection";
  std::optional<int> head_rows;  // nullopt: as recorded

  bool operator==(const ReplaySetting&) const = default;
};

// The values to combine; empty lists stand for what was recorded.
struct ReplayGrid {
  std::vector<std::string> kinds, rules;
  std::vector<std::optional<int>> lengths;
  std::vector<double> min_probabilities;
  std::vector<std::optional<int>> head_rows;
};

struct ReplayedAnswer {
  Metrics metrics;  // counts; its seconds are not used
  double plain_seconds = 0, draft_seconds = 0, verify_seconds = 0, sample_seconds = 0, other_seconds = 0;
  int tokens = 0;  // that were decoded: all but the first

  double seconds() const { return draft_seconds + verify_seconds + sample_seconds + other_seconds; }
  double ratio() const { return plain_seconds / seconds(); }  // speed over that of plain decoding
  void add(const ReplayedAnswer& other);
};

struct Prediction {
  ReplaySetting setting;
  ReplayedAnswer total;
  std::vector<ReplayedAnswer> answers;  // in the recording's order

  double tokens_per_second() const { return total.tokens / total.seconds(); }
  double worst_ratio() const;
  std::optional<double> acceptance() const;  // accepted over tested; nullopt: nothing was drafted
  double tokens_a_step() const { return static_cast<double>(total.tokens) / static_cast<double>(total.metrics.steps); }
};

// Replays run the engine, the drafters, the rules and the length policies of a real run; only the models remember. At
// temperature 0 steps, tested and accepted counts are those of a real run for every length that a clock does not
// decide; above, see ReplayRows. Seconds are sums of recorded ones: of the target's passes by rows, of draft passes by
// rows, of sampling a row.
class Replayer {
 public:
  // `ranking`: token ids for heads of other sizes, the most useful first (draft.head_ranking). `repeats`: replays of
  // each answer with other draws, above temperature 0. Throws Error(file) for a recording without answers.
  explicit Replayer(Recording recording, std::vector<TokenId> ranking = {}, int repeats = 8);

  // All combinations, each once: what does not matter to a kind, or at temperature 0, is not varied. Throws
  // Error(usage) naming the value that the recording cannot answer for, and why.
  std::vector<ReplaySetting> combinations(const ReplayGrid& grid) const;
  // `setting` is one of combinations(). Throws Error(file) when the recording contradicts itself.
  Prediction predict(const ReplaySetting& setting) const;

  const Recording& recording() const { return recording_; }  // tokens renumbered
  double plain_tokens_per_second() const;

 private:
  void check(const ReplaySetting& setting) const;
  ReplaySetting relevant(ReplaySetting setting) const;
  std::optional<ReplayRows::Head> head(const ReplaySetting& setting) const;
  double draft_share(const ReplaySetting& setting) const;
  ReplayedAnswer replay(const RecordedAnswer& answer, const ReplaySetting& setting, const ReplayRows::Head* head,
                        int repeat) const;

  Recording recording_;
  ReplayVocabulary vocabulary_;
  std::vector<TokenId> ranking_;
  int repeats_;
  RowRatios target_ratios_, draft_ratios_;
};

}  // namespace tandem
