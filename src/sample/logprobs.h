// Log-probabilities of drawn tokens and of their best alternatives.
#pragma once
#include <array>
#include <span>

#include "src/base/types.h"
#include "src/sample/token_mask.h"

namespace tandem {

inline constexpr int kMaxLogprobs = 20;

struct TokenLogprob {
  TokenId id = 0;
  double logprob = 0;  // natural
};

// Of one generated token. Plain data of a fixed size, so that recording in the step loop allocates nothing.
struct TokenLogprobs {
  TokenLogprob drawn;
  std::array<TokenLogprob, kMaxLogprobs> best{};
  int count = 0;
  std::span<const TokenLogprob> top() const { return std::span(best).first(static_cast<std::size_t>(count)); }
};

// log of the sum of the exponentials of a row, in double, less its largest value first. NaN counts nothing.
double log_sum_exp(std::span<const float> logits);

// Log-softmax of the model's own row, before mask, bias, penalties, temperature and filters (what vLLM calls
// raw_logprobs, and what `tandem score` gives): of the drawn token, and of the `count` <= kMaxLogprobs best ids that
// `mask` allows, best first, ties by lowest id.
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId drawn, int count, const TokenMask& mask);

}  // namespace tandem
