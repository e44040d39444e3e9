// The sampler chain in its plainest form, for comparison: doubles, a full sort, one filter after the other.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "src/base/distribution.h"
#include "src/base/random.h"
#include "src/sample/sampling_options.h"

namespace tandem::testing {

inline std::vector<float> random_logits(std::size_t size, std::uint64_t seed, double scale, int steps = 0) {
  const Noise noise{seed, 0};
  std::vector<float> logits(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double value = scale * noise.gumbel(0, static_cast<TokenId>(i));
    logits[i] = static_cast<float>(steps > 0 ? std::round(value * steps) / steps : value);  // steps make ties
  }
  return logits;
}

// Bias and penalties, token by token over the whole vocabulary.
inline std::vector<double> penalised(std::span<const float> row, const SamplingOptions& options,
                                     std::span<const TokenId> context) {
  std::vector<double> logits(row.begin(), row.end());
  for (const auto& [token, bias] : options.logit_bias) logits[static_cast<std::size_t>(token)] += bias;
  const auto window = context.last(std::min(context.size(), static_cast<std::size_t>(options.penalty_window)));
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const auto seen = std::count(window.begin(), window.end(), static_cast<TokenId>(token));
    if (seen == 0) continue;
    logits[token] *= logits[token] > 0 ? 1 / options.repetition_penalty : options.repetition_penalty;
    logits[token] -= options.presence_penalty + options.frequency_penalty * static_cast<double>(seen);
  }
  return logits;
}

// The distribution of finite logits; temperature above 0.
inline Distribution expected(const std::vector<double>& logits, const SamplingOptions& options) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  if (options.top_k > 0 && options.top_k < static_cast<int>(order.size())) order.resize(options.top_k);
  const double best = logits[order[0]];
  const auto weight = [&](int i) { return std::exp((logits[i] - best) / options.temperature); };
  double total = 0, before = 0;
  for (const int i : order) total += weight(i);
  std::vector<int> kept;
  for (const int i : order) {
    if (options.top_p < 1 && !kept.empty() && before >= options.top_p * total) break;
    before += weight(i);
    kept.push_back(i);
  }
  std::erase_if(kept, [&](int i) { return weight(i) < options.min_p; });
  std::sort(kept.begin(), kept.end());
  Distribution out;
  for (const int i : kept) out.add(i, weight(i));
  out.normalise();
  return out;
}

}  // namespace tandem::testing
