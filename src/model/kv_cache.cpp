#include "src/model/kv_cache.h"

#include <cassert>
#include <cstring>

#include "src/base/error.h"

namespace tandem {

KvCache::KvCache(const ModelSpec& spec, int capacity, KvType type, Backend& backend)
    : backend_(backend), capacity_(capacity) {
  if (capacity < 1 || capacity > spec.context) {
    fail(ErrorKind::model, "context {} is outside 1..{}, the limit of this model", capacity, spec.context);
  }
  if (!stores_heads(type, spec.head_dim)) {
    fail(ErrorKind::model, "kv_cache {}: expected heads (head_dim) of a multiple of {} elements, got {}", name_of(type),
         kKvBlock, spec.head_dim);
  }
  const std::size_t part = static_cast<std::size_t>(spec.kv_heads) * capacity * slot_bytes_of(type, spec.head_dim);
  memory_ = backend.allocate(2 * part * spec.layers);
  for (int i = 0; i < spec.layers; ++i) {
    std::byte* keys = memory_->data() + 2 * part * i;
    layers_.push_back({keys, keys + part, type, spec.kv_heads, capacity, spec.head_dim});
  }
}

std::size_t KvCache::bytes() const {
  const KvLayer& l = layers_.front();
  return layers_.size() * 2 * l.kv_heads * l.capacity * l.slot_bytes();
}

void KvCache::advance(int rows) {
  assert(size_ + rows <= capacity_);
  size_ += rows;
}

void KvCache::truncate(int tokens) {
  assert(tokens >= 0 && tokens <= size_);
  size_ = tokens;
}

void KvCache::keep_path(int base, std::span<const int> path) {
  assert(base + static_cast<int>(path.size()) <= size_);
  const bool in_place = path.empty() || path.back() == static_cast<int>(path.size()) - 1;
  if (!in_place) {
    for (const KvLayer& layer : layers_) backend_.move_kv(layer, base, path);
  }
  size_ = base + static_cast<int>(path.size());
}

std::vector<std::byte> KvCache::snapshot(int layer) const {
  const KvLayer& l = layers_[layer];
  std::vector<std::byte> bytes;
  for (const std::byte* part : {l.keys, l.values}) {
    for (int head = 0; head < l.kv_heads; ++head) {
      const std::byte* first = part + l.offset(head, 0);
      bytes.insert(bytes.end(), first, first + size_ * l.slot_bytes());
    }
  }
  return bytes;
}

std::size_t KvCache::snapshot_bytes(int tokens) const {
  std::size_t bytes = 0;
  for (const KvLayer& l : layers_) bytes += 2 * l.slot_bytes() * static_cast<std::size_t>(l.kv_heads) * tokens;
  return bytes;
}

void KvCache::restore(int tokens, std::span<const std::byte> layers) {
  assert(tokens >= 0 && tokens <= capacity_ && layers.size() == snapshot_bytes(tokens));
  for (const KvLayer& l : layers_) {
    const std::size_t slots = l.slot_bytes() * tokens;
    for (std::byte* part : {l.keys, l.values}) {
      for (int head = 0; head < l.kv_heads; ++head) {
        std::memcpy(part + l.offset(head, 0), layers.data(), slots);
        layers = layers.subspan(slots);
      }
    }
  }
  size_ = tokens;
}

}  // namespace tandem
