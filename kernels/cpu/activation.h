// Quantised activations: one group of up to 256 inputs of one row, in the two forms that the integer kernels read.
#pragma once
#include <cstdint>

#include "kernels/quant/tile.h"

namespace tandem::cpu {

// For Q4_K, Q5_K and Q6_K: one scale a group. The scale is widened, where needed, so that the |q| of any 16 aligned
// inputs sum to at most 1023: then sums of 32 products with 0..15, of 32 with -16..15 and of 16 with -32..31 fit an
// int16. Few groups need it, and those have little relative error.
struct alignas(64) GroupActs {
  std::int8_t q[kGroup];
  std::int32_t minus_32_sum16[16];  // -32 x the sum of each 16: where the sums of Q6_K start
  std::int32_t minus_16_sum32[8];   // -16 x the sum of each 32: where the sums of Q5_K start
  std::int16_t sum32[8];            // the sum of each 32: meets minima
  float scale;
};

// For the formats with one scale per 32 weights: one scale per 32 inputs, as those formats' error budget expects.
struct alignas(64) BlockActs {
  std::int8_t q[kGroup];
  std::int32_t minus_16_sum[8];  // -16 x the sum of each 32: where the sums of the formats with an offset start
  std::int32_t minus_128_sum[8];
  float scale[8];
  float scaled_sum[8];  // scale x sum: meets minima
};

inline constexpr int kActBytes = 384;
static_assert(sizeof(GroupActs) == kActBytes && sizeof(BlockActs) == kActBytes);

}  // namespace tandem::cpu
