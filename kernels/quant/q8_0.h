// Q8_0: 32 values scale * q with signed 8-bit q.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ8_0 {
  static constexpr FormatInfo kInfo{Format::q8_0, "Q8_0", 32, 34};
  std::uint8_t scale[2];  // f16
  std::int8_t quants[32];
};
static_assert(sizeof(BlockQ8_0) == BlockQ8_0::kInfo.block_bytes);

inline void decode(const BlockQ8_0& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(block.quants[i]);
}

}  // namespace tandem
