// What a user may set about sampling.
#pragma once
#include <utility>
#include <vector>

#include "src/base/types.h"

namespace tandem {

// Neutral values cost nothing and change no bit.
struct SamplingOptions {
  double temperature = 0.7;         // >= 0, finite; 0 is argmax
  int top_k = 40;                   // >= 0; 0 is off; ties at the cut go to the lowest ids
  double top_p = 0.95;              // [0, 1]; keeps token i iff the probability before it is < p; always the first
  double min_p = 0.0;               // [0, 1]; keeps tokens with at least min_p times the largest probability
  double repetition_penalty = 1.0;  // > 0, finite; divides positive logits of recent tokens, multiplies the others
  double presence_penalty = 0.0;    // finite; taken once from the logit of a recent token
  double frequency_penalty = 0.0;   // finite; taken once for each time that it occurred
  int penalty_window = 64;          // >= 0; the last tokens of the context, prompt included, that count as recent
  std::vector<std::pair<TokenId, double>> logit_bias{};  // added; finite, or -inf to ban; ids of one token add up
};

}  // namespace tandem
