// Q5_0: 32 values scale * (q - 16) with 5-bit q.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ5_0 {
  static constexpr FormatInfo kInfo{Format::q5_0, "Q5_0", 32, 22};
  std::uint8_t scale[2];       // f16
  std::uint8_t fifth_bits[4];  // bit i: the top bit of value i
  std::uint8_t quants[16];     // low four bits; byte i: value i below, value i + 16 above
};
static_assert(sizeof(BlockQ5_0) == BlockQ5_0::kInfo.block_bytes);

inline void decode(const BlockQ5_0& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  const auto fifth_bits = load_le<std::uint32_t>(block.fifth_bits);
  std::uint8_t quants[32];
  unpack_nibbles(block.quants, quants);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>((quants[i] | fifth_bit(fifth_bits, i)) - 16);
}

}  // namespace tandem
