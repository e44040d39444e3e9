#include "src/model/memoised_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <numeric>

#include "kernels/registry.h"
#include "src/base/thread_pool.h"

namespace tandem {
namespace {

// One layer with one head of one f32 element, whose key is the prefix's number.
ModelSpec slot_spec(const ModelSpec& model) {
  ModelSpec spec = model;
  spec.layers = spec.heads = spec.kv_heads = spec.head_dim = 1;
  return spec;
}

std::byte* slot_of(const KvCache& cache, int slot) {
  const KvLayer& layer = cache.layer(0);
  return layer.keys + layer.offset(0, slot);
}

}  // namespace

struct MemoisedModel::Slots {
  explicit Slots(const ModelSpec& model) : spec(slot_spec(model)), backend(make_backend("reference", pool)) {}
  ModelSpec spec;
  ThreadPool pool{1};
  std::unique_ptr<Backend> backend;
};

MemoisedModel::MemoisedModel(LanguageModel& model, int capacity, KvType kv_type, std::size_t most_bytes)
    : model_(model),
      cache_(model.make_cache(capacity, kv_type)),
      positions_(static_cast<std::size_t>(capacity)),
      nodes_{{0, 0, {}}},
      bytes_left_(most_bytes),
      slots_(std::make_unique<Slots>(model.spec())) {
  static_assert(sizeof(Prefix) == slot_bytes_of(KvType::f32, 1));
  std::iota(positions_.begin(), positions_.end(), 0);
}

MemoisedModel::~MemoisedModel() = default;

KvCache MemoisedModel::make_cache(int capacity, KvType) const {
  return KvCache(slots_->spec, capacity, KvType::f32, *slots_->backend);
}

MemoisedModel::Prefix MemoisedModel::extend(Prefix parent, TokenId token) {
  const std::uint64_t key = static_cast<std::uint64_t>(parent) << 32 | static_cast<std::uint32_t>(token);
  const auto [at, is_new] = children_.try_emplace(key, static_cast<Prefix>(nodes_.size()));
  if (is_new) nodes_.push_back({parent, token, {}});
  return at->second;
}

Logits MemoisedModel::forward(const Batch& batch, KvCache& cache) {
  const int base = cache.size(), rows = static_cast<int>(batch.tokens.size());
  assert(base + rows <= cache.capacity());
  Prefix before = 0;
  if (base > 0) std::memcpy(&before, slot_of(cache, base - 1), sizeof before);
  std::array<Prefix, kMaxTreeNodes> tree{};
  std::size_t answered = 0;
  const std::size_t vocab = static_cast<std::size_t>(spec().vocab);
  if (batch.logits_rows.size() > held_.size()) {
    held_.resize(batch.logits_rows.size(), 0);
    rows_.resize(held_.size() * vocab);
  }
  for (int row = 0; row < rows; ++row) {
    Prefix parent = before;
    if (!batch.ancestors.empty()) {
      const std::uint64_t above = batch.ancestors[row] & ~(std::uint64_t{1} << row);
      parent = above == 0 ? before : tree[std::bit_width(above) - 1];
    }
    const Prefix prefix = extend(parent, batch.tokens[row]);
    std::memcpy(slot_of(cache, base + row), &prefix, sizeof prefix);
    (batch.ancestors.empty() ? before : tree[row]) = prefix;
    if (answered == batch.logits_rows.size() || batch.logits_rows[answered] != row) continue;
    if (held_[answered] != prefix) {
      const std::span<const float> logits = logits_of(prefix);
      std::copy(logits.begin(), logits.end(), rows_.begin() + static_cast<std::ptrdiff_t>(answered * vocab));
      held_[answered] = prefix;
    }
    ++answered;
  }
  cache.advance(rows);
  return {std::span<const float>(rows_).first(answered * vocab), spec().vocab};
}

std::span<const float> MemoisedModel::logits_after(std::span<const TokenId> tokens) {
  Prefix prefix = 0;
  for (const TokenId token : tokens) prefix = extend(prefix, token);
  return logits_of(prefix);
}

std::span<const float> MemoisedModel::logits_of(Prefix prefix) {
  Node& node = nodes_[static_cast<std::size_t>(prefix)];
  if (!node.logits.empty()) return node.logits;
  compute(prefix);
  const std::size_t bytes = newest_.size() * sizeof(float);
  if (bytes > bytes_left_) return newest_;
  bytes_left_ -= bytes;
  node.logits = newest_;
  return node.logits;
}

// Runs what the true cache does not share with the prefix.
void MemoisedModel::compute(Prefix prefix) {
  wanted_.clear();
  for (Prefix at = prefix; at != 0; at = nodes_[static_cast<std::size_t>(at)].parent) {
    wanted_.push_back(nodes_[static_cast<std::size_t>(at)].token);
  }
  std::reverse(wanted_.begin(), wanted_.end());
  model_.follow(wanted_);  // what is remembered must be a function of the prefix alone
  const std::size_t most = std::min(path_.size(), wanted_.size() - 1);
  const auto same = std::mismatch(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(most), wanted_.begin());
  path_.erase(same.first, path_.end());
  cache_.truncate(static_cast<int>(path_.size()));
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
