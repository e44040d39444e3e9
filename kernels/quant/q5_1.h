// Q5_1: 32 values scale * q + minimum with 5-bit q.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ5_1 {
  static constexpr FormatInfo kInfo{Format::q5_1, "Q5_1", 32, 24};
  std::uint8_t scale[2];       // f16
  std::uint8_t minimum[2];     // f16
  std::uint8_t fifth_bits[4];  // bit i: the top bit of value i
  std::uint8_t quants[16];     // low four bits; byte i: value i below, value i + 16 above
};
static_assert(sizeof(BlockQ5_1) == BlockQ5_1::kInfo.block_bytes);

// The product is exact in float (11 + 5 bits), so the sum is the one rounding.
inline void decode(const BlockQ5_1& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  const float minimum = load_half(block.minimum);
  const auto fifth_bits = load_le<std::uint32_t>(block.fifth_bits);
  std::uint8_t quants[32];
  unpack_nibbles(block.quants, quants);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i] | fifth_bit(fifth_bits, i)) + minimum;
}

}  // namespace tandem
