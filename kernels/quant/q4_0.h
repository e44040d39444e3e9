// Q4_0: 32 values scale * (q - 8) with 4-bit q.
#pragma once
#include <cmath>
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

// As GGUF's reference: the value that is largest in size becomes quant 0, that is scale * -8; the others go to the
// nearest quant, halves up. 32 values; what is no number becomes some quant.
inline void encode(const float* __restrict values, BlockQ4_0& block) {
  float extreme = 0;
  for (int i = 0; i < 32; ++i) extreme = std::abs(values[i]) > std::abs(extreme) ? values[i] : extreme;
  const float scale = extreme / -8;
  const float inverse = scale != 0 ? 1 / scale : 0;
  store_half(block.scale, scale);
  std::uint8_t quants[32];
  for (int i = 0; i < 32; ++i) {
    const float quant = values[i] * inverse + 8.5f;  // the cast drops the fraction
    const float in_range = quant > 0 ? (quant < 15 ? quant : 15) : 0;
    quants[i] = static_cast<std::uint8_t>(static_cast<int>(in_range));
  }
  for (int i = 0; i < 16; ++i) block.quants[i] = static_cast<std::uint8_t>(quants[i] | quants[i + 16] << 4);
}

}  // namespace tandem
