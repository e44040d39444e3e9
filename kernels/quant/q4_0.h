// Q4_0: 32 values scale * (q - 8) with 4-bit q.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ4_0 {
  static constexpr FormatInfo kInfo{Format::q4_0, "Q4_0", 32, 18};
  std::uint8_t scale[2];    // f16
  std::uint8_t quants[16];  // byte i: value i below, value i + 16 above
};
static_assert(sizeof(BlockQ4_0) == BlockQ4_0::kInfo.block_bytes);

inline void decode(const BlockQ4_0& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  std::uint8_t quants[32];
  unpack_nibbles(block.quants, quants);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i] - 8);
}

}  // namespace tandem
