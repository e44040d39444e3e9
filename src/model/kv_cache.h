// Keys and values of one sequence, with the two rollbacks: truncate for a chain, keep_path for a tree.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "src/model/model_spec.h"

namespace tandem {

class KvCache {
 public:
  // Room for `capacity` tokens; all memory is taken here. Throws Error(model) when capacity is outside 1..spec.context
  // or `type` cannot hold the heads (q8_0: multiples of 32).
  KvCache(const ModelSpec& spec, int capacity, KvType type, Backend& backend);

  int size() const { return size_; }  // tokens held
  int capacity() const { return capacity_; }
  KvType type() const { return layers_.front().type; }
  const KvLayer& layer(int i) const { return layers_[i]; }
  std::size_t bytes() const;

  // Called by the forward pass after it has stored `rows` more slots.
  void advance(int rows);
  // Forgets everything after the first `tokens`.
  void truncate(int tokens);
  // Keeps slots [0, base) and, of the pass stored from `base` on, the rows of `path` (ascending, row 0 first), moved
  // together.
  void keep_path(int base, std::span<const int> path);

  // Bytes of the keys then values of one layer's first size() slots, head by head.
  std::vector<std::byte> snapshot(int layer) const;
  // Bytes of the snapshots of all layers together when `tokens` are held.
  std::size_t snapshot_bytes(int tokens) const;
  // Holds `tokens` <= capacity() again, from the snapshots of all layers, one after the other, of a cache that held so
  // many; what was held before is gone. `layers` has snapshot_bytes(tokens).
  void restore(int tokens, std::span<const std::byte> layers);

 private:
  Backend& backend_;
  int capacity_;
  int size_ = 0;
  std::unique_ptr<Buffer> memory_;
  std::vector<KvLayer> layers_;
};

}  // namespace tandem
