#include "src/model/memoised_model.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tandem {

MemoisedModel::MemoisedModel(LanguageModel& model, int capacity, KvType kv_type, std::size_t most_bytes)
    : model_(model),
      cache_(model.make_cache(capacity, kv_type)),
      positions_(static_cast<std::size_t>(capacity)),
      prefixes_(model.spec().context),
      bytes_left_(most_bytes) {
  std::iota(positions_.begin(), positions_.end(), 0);
}

Logits MemoisedModel::forward(const Batch& batch, KvCache& cache) {
  const std::size_t vocab = static_cast<std::size_t>(spec().vocab);
  if (batch.logits_rows.size() > held_.size()) {
    held_.resize(batch.logits_rows.size(), 0);
    rows_.resize(held_.size() * vocab);
  }
  std::size_t answered = 0;
  prefixes_.run(batch, cache, [&](Prefix prefix) {
    if (held_[answered] != prefix) {
      const std::span<const float> logits = logits_of(prefix);
      std::copy(logits.begin(), logits.end(), rows_.begin() + static_cast<std::ptrdiff_t>(answered * vocab));
      held_[answered] = prefix;
    }
    ++answered;
  });
  return {std::span<const float>(rows_).first(answered * vocab), spec().vocab};
}

std::span<const float> MemoisedModel::logits_after(std::span<const TokenId> tokens) {
  Prefix prefix = 0;
  for (const TokenId token : tokens) prefix = prefixes_.extend(prefix, token);
  return logits_of(prefix);
}

std::span<const float> MemoisedModel::logits_of(Prefix prefix) {
  if (static_cast<std::size_t>(prefix) >= logits_.size()) logits_.resize(static_cast<std::size_t>(prefixes_.size()));
  std::vector<float>& kept = logits_[static_cast<std::size_t>(prefix)];
  if (!kept.empty()) return kept;
  compute(prefix);
  const std::size_t bytes = newest_.size() * sizeof(float);
  if (bytes > bytes_left_) return newest_;
  bytes_left_ -= bytes;
  kept = newest_;
  return kept;
}

// Runs what the true cache does not share with the prefix.
void MemoisedModel::compute(Prefix prefix) {
  wanted_.clear();
  for (Prefix at = prefix; at != 0; at = prefixes_.parent(at)) wanted_.push_back(prefixes_.token(at));
  std::reverse(wanted_.begin(), wanted_.end());
  model_.follow(wanted_);  // what is remembered must be a function of the prefix alone
  const std::size_t most = std::min(path_.size(), wanted_.size() - 1);
  const auto same = std::mismatch(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(most), wanted_.begin());
  path_.erase(same.first, path_.end());
  path_.resize(static_cast<std::size_t>(cache_.truncate(static_cast<int>(path_.size()))));
  while (path_.size() < wanted_.size()) {
    const std::size_t done = path_.size();
    const std::size_t rows = std::min(wanted_.size() - done, static_cast<std::size_t>(max_rows()));
    const std::array<int, 1> last_row{static_cast<int>(rows) - 1};
    const bool last = done + rows == wanted_.size();
    const std::span<const TokenId> chunk = std::span<const TokenId>(wanted_).subspan(done, rows);
    const Logits logits = model_.forward({.tokens = chunk,
                                          .positions = std::span<const Position>(positions_).subspan(done, rows),
                                          .ancestors = {},
                                          .logits_rows = std::span<const int>(last_row).first(last ? 1 : 0)},
                                         cache_);
    path_.insert(path_.end(), chunk.begin(), chunk.end());
    if (last) newest_.assign(logits.row(0).begin(), logits.row(0).end());
  }
  ++computed_;
}

}  // namespace tandem
