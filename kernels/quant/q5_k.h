// Q5_K: eight groups of 32 values, scale * group_scale * q - minimum * group_minimum with 5-bit q.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ5_K {
  static constexpr FormatInfo kInfo{Format::q5_k, "Q5_K", 256, 176};
  std::uint8_t scale[2];          // f16
  std::uint8_t minimum[2];        // f16
  std::uint8_t group_scales[12];  // see unpack_group_scales
  std::uint8_t fifth_bits[32];    // bit g of byte i: the top bit of value i of group g
  std::uint8_t quants[128];       // low four bits; bytes 32 g..32 g + 31: group 2 g below, group 2 g + 1 above
};
static_assert(sizeof(BlockQ5_K) == BlockQ5_K::kInfo.block_bytes);

// Both products are exact in float (11 + 6 + 5 and 11 + 6 bits), so the difference is the one rounding.
inline void decode(const BlockQ5_K& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  const float minimum = load_half(block.minimum);
  const GroupScales groups = unpack_group_scales(block.group_scales);
  for (int pair = 0; pair < 4; ++pair) {
    const float low_scale = scale * static_cast<float>(groups.scale[2 * pair]);
    const float low_minimum = minimum * static_cast<float>(groups.minimum[2 * pair]);
    const float high_scale = scale * static_cast<float>(groups.scale[2 * pair + 1]);
    const float high_minimum = minimum * static_cast<float>(groups.minimum[2 * pair + 1]);
    const std::uint8_t* quants = block.quants + 32 * pair;
    float* __restrict values = out + 64 * pair;
    for (int i = 0; i < 32; ++i) {
      const int fifths = block.fifth_bits[i] >> (2 * pair);
      values[i] = low_scale * static_cast<float>((quants[i] & 15) | ((fifths & 1) << 4)) - low_minimum;
      values[i + 32] = high_scale * static_cast<float>((quants[i] >> 4) | ((fifths & 2) << 3)) - high_minimum;
    }
  }
}

}  // namespace tandem
