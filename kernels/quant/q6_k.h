// Q6_K: sixteen groups of 16 values, scale * group_scale * (q - 32) with 6-bit q.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ6_K {
  static constexpr FormatInfo kInfo{Format::q6_k, "Q6_K", 256, 210};
  std::uint8_t quants[128];   // low four bits; each half of 64 bytes holds 128 values, see decode
  std::uint8_t top_bits[64];  // top two bits; each half of 32 bytes holds 128 values, see decode
  std::int8_t group_scales[16];
  std::uint8_t scale[2];  // f16
};
static_assert(sizeof(BlockQ6_K) == BlockQ6_K::kInfo.block_bytes);

// scale * group_scale * q needs 11 + 7 + 5 bits, so every product is exact in float.
inline void decode(const BlockQ6_K& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  // Quarter k of a half block takes nibbles from bytes 32 (k mod 2).. (k < 2 below, else above) and bits 2 k of
  // top_bits.
  for (int part = 0; part < 4; ++part) {
    const int half = part / 2;
    const int place = 16 * (part % 2);
    const std::uint8_t* quants = block.quants + 64 * half + place;
    const std::uint8_t* top_bits = block.top_bits + 32 * half + place;
    const std::int8_t* group_scales = block.group_scales + 8 * half + part % 2;
    float* __restrict values = out + 128 * half + place;
    const float scales[4] = {scale * static_cast<float>(group_scales[0]), scale * static_cast<float>(group_scales[2]),
                             scale * static_cast<float>(group_scales[4]), scale * static_cast<float>(group_scales[6])};
    for (int i = 0; i < 16; ++i) {
      const int top = top_bits[i];
      values[i] = scales[0] * static_cast<float>(((quants[i] & 15) | ((top & 3) << 4)) - 32);
      values[i + 32] = scales[1] * static_cast<float>(((quants[i + 32] & 15) | ((top & 12) << 2)) - 32);
      values[i + 64] = scales[2] * static_cast<float>(((quants[i] >> 4) | (top & 48)) - 32);
      values[i + 96] = scales[3] * static_cast<float>(((quants[i + 32] >> 4) | ((top & 192) >> 2)) - 32);
    }
  }
}

}  // namespace tandem
