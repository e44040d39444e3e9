#include "src/model/kv_cache.h"

#include <algorithm>
#include <cassert>

#include "src/base/error.h"

namespace tandem {
namespace {

// Calls work(offset, bytes) for the slots of places [first, last) of one head, in order; only a ring has them in more
// than one piece.
template <typename Work>
void for_slots(const KvLayer& layer, int head, int first, int last, const Work& work) {
  while (first < last) {
    const int slot = layer.ring ? first % layer.capacity : first, count = std::min(last - first, layer.capacity - slot);
    work(layer.offset(head, first), count * layer.slot_bytes());
    first += count;
  }
}

}  // namespace

KvCache::KvCache(const ModelSpec& spec, int capacity, KvType type, Backend& backend, int max_rows)
    : backend_(backend), capacity_(capacity), max_rows_(max_rows) {
  if (capacity < 1 || capacity > spec.context) {
    fail(ErrorKind::model, "context {} is outside 1..{}, the limit of this model", capacity, spec.context);
  }
  if (!stores_heads(type, spec.head_dim)) {
    fail(ErrorKind::model, "kv_cache {}: expected heads (head_dim) of a multiple of {} elements, got {}", name_of(type),
         kKvBlock, spec.head_dim);
  }
  for (int i = 0; i < spec.layers; ++i) {
    const int window = spec.window_of(i);
    const bool ring = window > 0 && window < capacity - max_rows;
    layers_.push_back(
        {nullptr, nullptr, type, spec.kv_heads, ring ? window + max_rows : capacity, spec.head_dim, ring});
    windows_.push_back(window);
  }
  memory_ = backend.allocate(bytes());
  std::byte* next = memory_->data();
  for (KvLayer& layer : layers_) {
    const std::size_t part = layer.offset(layer.kv_heads, 0);
    layer.keys = next;
    layer.values = next + part;
    next += 2 * part;
  }
}

std::size_t KvCache::bytes() const {
  std::size_t bytes = 0;
  for (const KvLayer& layer : layers_) bytes += 2 * layer.offset(layer.kv_heads, 0);
  return bytes;
}

int KvCache::first_seen(int layer, int next) const {
  const int window = windows_[static_cast<std::size_t>(layer)];
  return window > 0 ? std::max(0, next + 1 - window) : 0;
}

bool KvCache::holds(int next) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const int first = first_seen(static_cast<int>(i), next);
    if (layers_[i].ring && first < next && first < lost_) return false;
  }
  return true;
}

void KvCache::advance(int rows) {
  assert(rows <= max_rows_ && size_ + rows <= capacity_);
  size_ += rows;
  // A place keeps its slot until the place one ring later is stored. Rows that are rolled back have overwritten just as
  // much as those that stay.
  for (const KvLayer& layer : layers_) {
    if (layer.ring) lost_ = std::max(lost_, size_ - layer.capacity);
  }
}

int KvCache::truncate(int tokens) {
  assert(tokens >= 0 && tokens <= size_);
  size_ = tokens;
  if (tokens == 0 || !holds(tokens)) clear();
  return size_;
}

void KvCache::keep_path(int base, std::span<const int> path) {
  assert(base + static_cast<int>(path.size()) <= size_ && holds(base));
  const bool in_place = path.empty() || path.back() == static_cast<int>(path.size()) - 1;
  if (!in_place) {
    for (const KvLayer& layer : layers_) backend_.move_kv(layer, base, path);
  }
  size_ = base + static_cast<int>(path.size());
}

void KvCache::clear() { size_ = lost_ = 0; }

int KvCache::first_kept(const KvLayer& layer, int tokens) {
  return layer.ring ? std::max(0, tokens - layer.capacity) : 0;
}

std::vector<std::byte> KvCache::bytes_from(int layer, int first) const {
  const KvLayer& l = layers_[static_cast<std::size_t>(layer)];
  std::vector<std::byte> bytes(2 * l.slot_bytes() * static_cast<std::size_t>(l.kv_heads) * (size_ - first));
  std::span<std::byte> left = bytes;
  for (const std::byte* part : {l.keys, l.values}) {
    for (int head = 0; head < l.kv_heads; ++head) {
      for_slots(l, head, first, size_, [&](std::size_t offset, std::size_t count) {
        backend_.read(left.first(count), part + offset);
        left = left.subspan(count);
      });
    }
  }
  return bytes;
}

std::vector<std::byte> KvCache::snapshot(int layer) const { return bytes_from(layer, first_seen(layer, size_)); }

std::vector<std::byte> KvCache::image(int layer) const {
  return bytes_from(layer, first_kept(layers_[static_cast<std::size_t>(layer)], size_));
}

std::size_t KvCache::image_bytes(int tokens) const {
  std::size_t bytes = 0;
  for (const KvLayer& l : layers_) {
    bytes += 2 * l.slot_bytes() * static_cast<std::size_t>(l.kv_heads) * (tokens - first_kept(l, tokens));
  }
  return bytes;
}

void KvCache::restore(int tokens, int lost, std::span<const std::byte> images) {
  assert(tokens >= 0 && tokens <= capacity_ && images.size() == image_bytes(tokens));
  for (const KvLayer& l : layers_) {
    for (std::byte* part : {l.keys, l.values}) {
      for (int head = 0; head < l.kv_heads; ++head) {
        for_slots(l, head, first_kept(l, tokens), tokens, [&](std::size_t offset, std::size_t count) {
          backend_.write(part + offset, images.first(count));
          images = images.subspan(count);
        });
      }
    }
  }
  size_ = tokens;
  lost_ = lost;
}

}  // namespace tandem
