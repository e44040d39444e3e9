// F32: plain floats, one a block.
#pragma once
#include <cstdint>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

struct BlockF32 {
  static constexpr FormatInfo kInfo{Format::f32, "F32", 1, 4};
  std::uint8_t bits[4];
};
static_assert(sizeof(BlockF32) == BlockF32::kInfo.block_bytes);

inline void decode(const BlockF32& block, float* __restrict out) { out[0] = load_le<float>(block.bits); }

}  // namespace tandem
