// Q8_0: 32 values scale * q with signed 8-bit q.
#pragma once
#include <algorithm>
#include <cmath>
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

// As GGUF's reference: the largest size becomes 127; the others go to the nearest quant, halves away from 0. 32 values;
// what is no number becomes some quant.
inline void encode(const float* __restrict values, BlockQ8_0& block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[i]));
  const float scale = largest / 127;
  const float inverse = scale != 0 ? 1 / scale : 0;
  store_half(block.scale, scale);
  for (int i = 0; i < 32; ++i) {
    const float quant = values[i] * inverse;
    const float in_range = quant > -127 ? (quant < 127 ? quant : 127) : -127;
    block.quants[i] = static_cast<std::int8_t>(static_cast<int>(in_range + (in_range < 0 ? -0.5f : 0.5f)));
  }
}

}  // namespace tandem
