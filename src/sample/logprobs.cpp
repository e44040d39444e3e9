#include "src/sample/logprobs.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "src/sample/exponential.h"
#include "src/sample/ranked.h"
#include "src/sample/row_scan.h"

namespace tandem {
double log_sum_exp(std::span<const float> logits) {
  const double top = largest(logits);
  if (std::isinf(top)) return top;
  double total = 0;
  std::array<double, 256> block;
  for (std::size_t begin = 0; begin < logits.size(); begin += block.size()) {
    const std::size_t count = std::min(block.size(), logits.size() - begin);
    for (std::size_t i = 0; i < count; ++i) block[i] = logits[begin + i] - top;
    exponentials(std::span(block).first(count));
    total += sum(std::span(block).first(count));
  }
  return top + std::log(total);
}

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId drawn, int count, const TokenMask& mask) {
  assert(count >= 0 && count <= kMaxLogprobs);
  const double normaliser = log_sum_exp(logits);
  TokenLogprobs out;
  out.drawn = {drawn, logits[static_cast<std::size_t>(drawn)] - normaliser};
  if (count == 0) return out;
  const std::span<TokenLogprob> best = std::span(out.best).first(static_cast<std::size_t>(count));
  float bar = -std::numeric_limits<float>::infinity();
  for (const TokenRun& run : mask.runs()) {
    const TokenId end = std::min(run.end, static_cast<TokenId>(logits.size()));
    if (run.begin >= end) break;
    const auto values = logits.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(end - run.begin));
    each_above(values, bar, [&](std::size_t i) {
      insert_ranked(best, out.count, {run.begin + static_cast<TokenId>(i), values[i]},
                    [](const TokenLogprob& a, const TokenLogprob& b) { return a.logprob > b.logprob; });
      if (out.count == count) bar = static_cast<float>(out.best[count - 1].logprob);
    });
  }
  for (int i = 0; i < out.count; ++i) out.best[i].logprob -= normaliser;
  return out;
}

}  // namespace tandem
