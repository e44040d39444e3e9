// Q4_1: 32 values scale * q + minimum with 4-bit q.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ4_1 {
  static constexpr FormatInfo kInfo{Format::q4_1, "Q4_1", 32, 20};
  std::uint8_t scale[2];    // f16
  std::uint8_t minimum[2];  // f16
  std::uint8_t quants[16];  // byte i: value i below, value i + 16 above
};
static_assert(sizeof(BlockQ4_1) == BlockQ4_1::kInfo.block_bytes);

// The product is exact in float (11 + 4 bits), so the sum is the one rounding.
inline void decode(const BlockQ4_1& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  const float minimum = load_half(block.minimum);
  std::uint8_t quants[32];
  unpack_nibbles(block.quants, quants);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i]) + minimum;
}

}  // namespace tandem
