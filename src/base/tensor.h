// Views of activations and of the KV cache. Views never own; owners never view.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tandem {

// F32 activations [rows, cols], row-major. `stride` counts floats between rows.
struct Rows {
  float* data = nullptr;
  int rows = 0;
  int cols = 0;
  std::ptrdiff_t stride = 0;

  constexpr float* row(int i) const { return data + i * stride; }
  // The same rows, columns [first, first + count).
  constexpr Rows columns(int first, int count) const { return {data + first, rows, count, stride}; }
  // Rows [first, first + count).
  constexpr Rows slice(int first, int count) const { return {row(first), count, cols, stride}; }
};

// Type of cached keys and values. q8_0: blocks of kKvBlock elements, an f16 scale and then an int8 an element.
enum class KvType : std::uint8_t { f32, f16, q8_0 };
inline constexpr int kKvBlock = 32;
inline constexpr int kKvBlockBytes = 2 + kKvBlock;

constexpr std::string_view name_of(KvType type) {
  return type == KvType::f32 ? "f32" : type == KvType::f16 ? "f16" : "q8_0";
}
// The type of that name; `name` is one of the three.
constexpr KvType kv_type_of(std::string_view name) {
  return name == "f32" ? KvType::f32 : name == "f16" ? KvType::f16 : KvType::q8_0;
}
// Whether heads of this size can be stored: q8_0 takes whole blocks only.
constexpr bool stores_heads(KvType type, int head_dim) { return type != KvType::q8_0 || head_dim % kKvBlock == 0; }
// Bytes of one head's key or value.
constexpr std::size_t slot_bytes_of(KvType type, int head_dim) {
  const auto elements = static_cast<std::size_t>(head_dim);
  return type == KvType::q8_0 ? elements / kKvBlock * kKvBlockBytes : elements * (type == KvType::f32 ? 4 : 2);
}

// One layer's cached keys and values, each [kv_heads, capacity, head_dim]. Keys are stored rotated. Places count the
// tokens of the sequence: place p lies in slot p, or in slot p mod capacity of a ring, which forgets old places.
struct KvLayer {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  KvType type = KvType::f16;
  int kv_heads = 0;
  int capacity = 0;  // slots
  int head_dim = 0;
  bool ring = false;

  // Whether places base .. base + rows - 1 have slots of their own.
  constexpr bool has_room(int base, int rows) const { return base >= 0 && (ring ? 0 : base) + rows <= capacity; }
  constexpr std::size_t slot_bytes() const { return slot_bytes_of(type, head_dim); }
  // Bytes from the first key or value to the one of a place.
  constexpr std::size_t offset(int kv_head, int place) const {
    const int slot = ring ? place % capacity : place;
    return (static_cast<std::size_t>(kv_head) * capacity + slot) * slot_bytes();
  }
};

}  // namespace tandem
