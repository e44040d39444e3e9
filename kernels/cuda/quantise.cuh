// A warp makes one sub-block of int8 activations (matmul.h), a lane for each input.
#pragma once
#include <cmath>

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/matmul.h"

namespace tandem::TANDEM_GPU {

inline constexpr float kSmallestPeak = 1e-36f;  // below it 127 / peak would overflow; such inputs count as zeros

__device__ inline void quantise_block(const QuantisedRows& out, int block, int row, float value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const bool finite = __all_sync(kWholeWarp, std::isfinite(value)) != 0;
  const float peak = warp_max(finite ? std::fabs(value) : 0.f);
  const float inverse = peak > kSmallestPeak ? 127.f / peak : 0.f;
  const int code = static_cast<int>(std::rint(finite ? value * inverse : 0.f));
  const int sum_low = warp_sum(lane < 16 ? code : 0), sum_high = warp_sum(lane < 16 ? 0 : code);

  const std::size_t at = static_cast<std::size_t>(block) * out.row_slots + row;
  out.codes[32 * at + 8 * (lane % 16 / 4) + lane / 16 * 4 + lane % 4] = static_cast<std::int8_t>(code);
  if (lane == 0) {
    const float scale = finite ? peak / 127.f : NAN;
    out.sums[at] = {scale, scale * static_cast<float>(sum_low + sum_high), sum_low, sum_high};
  }
}

}  // namespace tandem::TANDEM_GPU
