#include "src/engine/scoring.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/error.h"

namespace tandem {
namespace {

// log softmax of one entry, by log-sum-exp in double.
double log_probability(std::span<const float> logits, TokenId id) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float value : logits) sum += std::exp(value - top);
  return logits[id] - top - std::log(sum);
}

}  // namespace

Scores score(const ModelFile& model, Backend& backend, std::span<const TokenId> ids,
             const std::function<void(int, int)>& progress, std::optional<KvType> kv_cache) {
  const int total = static_cast<int>(ids.size());
  if (total < 1 || total > model.spec.context) {
    fail(ErrorKind::input, "text: expected 1..{} tokens, the context of {}, got {}", model.spec.context,
         model.file->name(), total);
  }
  Transformer transformer(model.spec, *model.file, backend, kMaxTreeNodes, total);
  KvCache cache = transformer.make_cache(total, kv_cache.value_or(backend.preferred_kv_type()));
  std::vector<int> rows(kMaxTreeNodes);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<Position> positions(kMaxTreeNodes);

  Scores scores;
  scores.logprobs.push_back(NAN);
  double sum = 0;
  for (int first = 0; first < total; first += kMaxTreeNodes) {
    const auto count = static_cast<std::size_t>(std::min(kMaxTreeNodes, total - first));
    std::iota(positions.begin(), positions.end(), first);
    const Logits logits = transformer.forward(
        {ids.subspan(first, count), std::span(positions).first(count), {}, std::span(rows).first(count)}, cache);
    for (int i = 0; i < static_cast<int>(count); ++i) {
      const std::span<const float> row = logits.row(i);
      scores.argmax.push_back(static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin()));
      if (first + i + 1 < total) {
        scores.logprobs.push_back(log_probability(row, ids[first + i + 1]));
        sum += scores.logprobs.back();
      }
    }
    if (first + static_cast<int>(count) == total) {
      const std::span<const float> row = logits.row(static_cast<int>(count) - 1);
      scores.last_logits.assign(row.begin(), row.end());
    }
    if (progress) progress(first + static_cast<int>(count), total);
  }
  if (total > 1) scores.perplexity = std::exp(-sum / (total - 1));
  return scores;
}

}  // namespace tandem
