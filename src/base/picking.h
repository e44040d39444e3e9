// Picking the token after a row of logits, or the few that matter, where the row lies: a device need not send the row.
#pragma once
#include <cstdint>
#include <span>

#include "src/base/random.h"

namespace tandem {

// What the sampler does with a row that no constraint, bias or penalty touches: mask, temperature, top-k, top-p, min-p,
// then plain decoding's noise (SamplingOptions says what the numbers mean).
struct Picking {
  double temperature = 0;  // 0: the largest logit, ties to the lowest id
  int top_k = 0;
  double top_p = 1, min_p = 0;
  Noise noise{};
  std::span<const std::uint32_t> usable{};     // bit i % 32 of word i / 32: token i may be chosen; empty: all may
  std::span<const std::uint32_t> positions{};  // one a row: what keys its noise; only of tokens
  int candidates = 0;                          // 0: a token; else so many of the largest logits, above -inf
};

// A usable token of a row and its logit.
struct Candidate {
  TokenId token = -1;  // -1 behind the last usable one
  float logit = 0;
};

}  // namespace tandem
