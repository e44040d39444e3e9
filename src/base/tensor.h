// Views of activations and of the KV cache. Views never own; owners never view.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tandem {

// F32 activations [rows, cols], row-major. `stride` counts floats between rows.
struct Rows {
  float* data = nullptr;
  int rows = 0;
  int cols = 0;
  std::ptrdiff_t stride = 0;

  float* row(int i) const { return data + i * stride; }
  // The same rows, columns [first, first + count).
  Rows columns(int first, int count) const { return {data + first, rows, count, stride}; }
  // Rows [first, first + count).
  Rows slice(int first, int count) const { return {row(first), count, cols, stride}; }
};

enum class KvType : std::uint8_t { f32, f16 };

constexpr std::size_t bytes_of(KvType type) { return type == KvType::f32 ? 4 : 2; }

// One layer's cached keys and values, each [kv_heads, capacity, head_dim]. Keys are stored rotated.
struct KvLayer {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  KvType type = KvType::f16;
  int kv_heads = 0;
  int capacity = 0;  // slots
  int head_dim = 0;

  std::size_t slot_bytes() const { return head_dim * bytes_of(type); }
  std::size_t offset(int kv_head, int slot) const {
    return (static_cast<std::size_t>(kv_head) * capacity + slot) * slot_bytes();
  }
};

}  // namespace tandem
