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
  // Room for `capacity` tokens; all memory is taken here. A layer with a sliding window keeps only the last window +
  // max_rows places, in a ring, when that is less: what a pass of `max_rows` rows sees, with every way back from it.
  // Throws Error(model) when capacity is outside 1..spec.context or `type` cannot hold the heads (q8_0: multiples of
  // 32).
  KvCache(const ModelSpec& spec, int capacity, KvType type, Backend& backend, int max_rows = kMaxTreeNodes);

  int size() const { return size_; }  // tokens held
  int capacity() const { return capacity_; }
  int max_rows() const { return max_rows_; }  // most rows of one pass
  KvType type() const { return layers_.front().type; }
  const KvLayer& layer(int i) const { return layers_[i]; }
  std::size_t bytes() const;

  // Called by the forward pass after it has stored `rows` more places.
  void advance(int rows);
  // Forgets everything after the first `tokens` and returns size(): `tokens`, or 0 when a ring has lost places that the
  // next token would see, so that all must be prefilled again. Never 0 when no more than max_rows() + 1 places behind
  // `tokens` were ever stored since the last clear(), nor without sliding windows.
  [[nodiscard]] int truncate(int tokens);
  // Keeps places [0, base) and, of the pass stored from `base` on, the rows of `path` (ascending, row 0 first), moved
  // together; an empty path keeps none. Possible where truncate(base) would be exact, so always for the pass stored
  // last.
  void keep_path(int base, std::span<const int> path);
  void clear();

  // Bytes of the keys then values of one layer, head by head, of those among the first size() places that the next
  // token sees: for tests of bit equality.
  std::vector<std::byte> snapshot(int layer) const;

  // The same of all places that the layer has slots for: what restore() needs.
  std::vector<std::byte> image(int layer) const;
  // Bytes of the images of all layers together when `tokens` are held.
  std::size_t image_bytes(int tokens) const;
  // Places from the first on that a ring no longer holds, though it may have slots for them.
  int lost() const { return lost_; }
  // Holds `tokens` <= capacity() again, from the images of all layers, one after the other, of a cache that held so
  // many and had lost so many; what was held before is gone. `images` has image_bytes(tokens).
  void restore(int tokens, int lost, std::span<const std::byte> images);

 private:
  // First place that the token at place `next` sees in a layer.
  int first_seen(int layer, int next) const;
  // First place that a layer has a slot for when `tokens` are held.
  static int first_kept(const KvLayer& layer, int tokens);
  std::vector<std::byte> bytes_from(int layer, int first) const;
  // Whether every layer still holds all that the token at place `next` sees.
  bool holds(int next) const;

  Backend& backend_;
  int capacity_, max_rows_;
  int size_ = 0;
  int lost_ = 0;  // places from the first on that a ring no longer holds
  std::unique_ptr<Buffer> memory_;
  std::vector<KvLayer> layers_;
  std::vector<int> windows_;  // of each layer; 0 = all places
};

}  // namespace tandem
