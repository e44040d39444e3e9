// F16: IEEE 754 binary16, one a block.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

struct BlockF16 {
  static constexpr FormatInfo kInfo{Format::f16, "F16", 1, 2};
  std::uint8_t bits[2];
};
static_assert(sizeof(BlockF16) == BlockF16::kInfo.block_bytes);

inline void decode(const BlockF16& block, float* __restrict out) { out[0] = load_half(block.bits); }

}  // namespace tandem
