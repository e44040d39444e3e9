// Logit bias and penalties: the few logits of a row that they change.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "src/base/types.h"
#include "src/sample/sampling_options.h"
#include "src/sample/token_mask.h"

namespace tandem {

struct AdjustedLogit {
  TokenId token;
  double logit;
};

// Order: bias, repetition penalty (Keskar et al. 2019, "CTRL", section 4.1, sign-correct: a positive logit is divided,
// any other multiplied), then presence and frequency penalty (subtracted). Not thread-safe: reuses scratch; no
// allocation once warm. The cost follows the window and the bias, never the vocabulary.
class LogitAdjuster {
 public:
  // Throws Error(config) for an option outside its range.
  explicit LogitAdjuster(const SamplingOptions& options);

  // Whether any row may have changed logits.
  bool adjusts() const { return penalises() || !bias_.empty(); }

  // Changed logits of one row, ascending in token; `context` is everything before the row's next token. Tokens that
  // `mask` refuses or that lie beyond the row are left out. Valid until the next call.
  std::span<const AdjustedLogit> adjust(std::span<const float> logits, std::span<const TokenId> context,
                                        const TokenMask& mask);

 private:
  bool penalises() const { return repetition_ != 1 || presence_ != 0 || frequency_ != 0; }
  void read_window(std::span<const TokenId> context);
  double penalised(double logit, int occurrences) const;

  double repetition_, presence_, frequency_;
  std::size_t window_;
  std::vector<std::pair<TokenId, double>> bias_;  // ascending in token
  std::vector<TokenId> recent_;                   // tokens of the window, ascending
  std::vector<AdjustedLogit> adjusted_;
};

}  // namespace tandem
