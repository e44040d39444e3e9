#include "src/model/prefix_tree.h"

#include <cstring>

#include "kernels/registry.h"
#include "src/base/thread_pool.h"

namespace tandem {
namespace {

// One layer with one head of one f32 element, whose key is the prefix's number.
ModelSpec slot_spec(int context) {
  ModelSpec spec;
  spec.layers = spec.heads = spec.kv_heads = spec.head_dim = 1;
  spec.context = context;
  return spec;
}

std::byte* slot_of(const KvCache& cache, int slot) {
  const KvLayer& layer = cache.layer(0);
  return layer.keys + layer.offset(0, slot);
}

}  // namespace

struct PrefixTree::Slots {
  explicit Slots(int context) : spec(slot_spec(context)), backend(make_backend("reference", pool)) {}
  ModelSpec spec;
  ThreadPool pool{1};
  std::unique_ptr<Backend> backend;
};

PrefixTree::PrefixTree(int context) : slots_(std::make_unique<Slots>(context)) {
  static_assert(sizeof(Prefix) == slot_bytes_of(KvType::f32, 1));
}

PrefixTree::~PrefixTree() = default;

KvCache PrefixTree::make_cache(int capacity) const {
  return KvCache(slots_->spec, capacity, KvType::f32, *slots_->backend, capacity);
}

Prefix PrefixTree::held(const KvCache& cache, int slot) {
  Prefix prefix;
  std::memcpy(&prefix, slot_of(cache, slot), sizeof prefix);
  return prefix;
}

void PrefixTree::hold(const KvCache& cache, int slot, Prefix prefix) {
  std::memcpy(slot_of(cache, slot), &prefix, sizeof prefix);
}

Prefix PrefixTree::extend(Prefix parent, TokenId token) {
  const std::uint64_t key = static_cast<std::uint64_t>(parent) << 32 | static_cast<std::uint32_t>(token);
  const auto [at, is_new] = children_.try_emplace(key, static_cast<Prefix>(nodes_.size()));
  if (is_new) nodes_.push_back({parent, token});
  return at->second;
}

}  // namespace tandem
