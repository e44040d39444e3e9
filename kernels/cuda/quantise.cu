// Activations to int8.
//
// Threads: a warp for each 32 inputs of a row, a lane an input; 8 rows a block. Reads 4 bytes an input, writes 1.5.
// By estimate a step's 60 launches of it read what its matrices write and stay in the L2: 2-3 us each, all launch.
#include <cmath>

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/matmul.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kWarps = 8;
constexpr float kSmallestPeak = 1e-36f;  // below it 127 / peak would overflow; such inputs count as zeros

__global__ void quantise_rows_kernel(QuantisedRows out, Rows x) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes, block = static_cast<int>(blockIdx.x),
            row = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / kWarpLanes;
  const int input = 32 * block + lane;
  const float value = row < x.rows && input < x.cols ? x.row(row)[input] : 0.f;
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

}  // namespace

void quantise_rows(const QuantisedRows& out, Rows x, cudaStream_t stream) {
  launch(quantise_rows_kernel, dim3(out.blocks, out.row_slots / kWarps), dim3(kWarps * kWarpLanes), 0, stream, out, x);
}

}  // namespace tandem::TANDEM_GPU
