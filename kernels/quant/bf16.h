// BF16: bfloat16, one a block.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

struct BlockBF16 {
  static constexpr FormatInfo kInfo{Format::bf16, "BF16", 1, 2};
  std::uint8_t bits[2];
};
static_assert(sizeof(BlockBF16) == BlockBF16::kInfo.block_bytes);

inline void decode(const BlockBF16& block, float* __restrict out) {
  out[0] = bf16_to_float(load_le<std::uint16_t>(block.bits));
}

}  // namespace tandem
