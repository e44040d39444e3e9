// What the tests of attention share: a cache of one layer and masks of random trees.
#pragma once
#include "tests/kernels/kernel_fixture.h"

namespace tandem::test {

inline constexpr float kEpsilon = 1.1920929e-7f;
inline constexpr KvType kAllKvTypes[] = {KvType::f32, KvType::f16, KvType::q8_0};

struct Shape {
  int kv_heads, shared, head_dim, capacity;
  int kv_cols() const { return kv_heads * head_dim; }
  int cols() const { return kv_cols() * shared; }
};

// A cache of one layer and the inputs of a pass.
class Cache {
 public:
  // `ring`: slots of a ring; 0 = a slot for each of shape.capacity places.
  Cache(Backend& backend, const Shape& shape, KvType type, int ring = 0) {
    const int slots = ring > 0 ? ring : shape.capacity;
    const std::size_t bytes = static_cast<std::size_t>(shape.kv_heads) * slots * slot_bytes_of(type, shape.head_dim);
    keys_ = backend.allocate(bytes);
    values_ = backend.allocate(bytes);
    layer = {keys_->data(), values_->data(), type, shape.kv_heads, slots, shape.head_dim, ring > 0};
  }
  KvLayer layer;

 private:
  std::unique_ptr<Buffer> keys_, values_;
};

// Ancestor masks of a random tree: parents before children.
inline std::vector<std::uint64_t> random_tree(int rows, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint64_t> masks(rows);
  for (int i = 0; i < rows; ++i) {
    const int parent = i == 0 ? -1 : static_cast<int>(random() % (i + 1)) - 1;
    masks[i] = (parent < 0 ? 0 : masks[parent]) | std::uint64_t{1} << i;
  }
  return masks;
}

}  // namespace tandem::test
