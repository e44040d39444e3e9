// F32, F16 and BF16 weights times float activations, tiles of 16 outputs x 16 rows on TF32 tensor cores.
//
// Threads: as matmul_codes.cu, a block of 8 warps for a tile; warp w takes the runs of 64 inputs w, w + 8, ... TF32
// keeps 11 bits of a number, so an activation is split in two (22 bits; their products with F16 and BF16 weights lose
// nothing else) and multiplied twice; an F32 weight is split as well, which takes three products.
//
// Bytes a row of weights: 2 or 4 a weight, read once a pass; activations 4 a value, from L1. An H200's tensor cores
// have about 4 times the TF32 products that 16 rows of F16 weights need at the speed of its memory.
//
// Lost, by estimate: F16 products with F16 activations (they overflow at 65504, and lose 13 bits); plain multiply-adds
// (bound by arithmetic from 12 rows on).
#include "kernels/cuda/matmul.cuh"
#include "kernels/cuda/tile_floats.cuh"
#include "kernels/cuda/with_format.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kRun = 64;  // inputs that a warp takes at a time
constexpr int kStep = 8;  // inputs of a fragment
constexpr int kRunSteps = kRun / kStep;

struct Split {
  std::uint32_t high, low;
};
__device__ inline Split split(float value) {
  const std::uint32_t high = tf32_of(value);
  return {high, tf32_of(value - std::bit_cast<float>(high))};
}

template <Format F, int kRowTiles>
__global__ void __launch_bounds__(kMmaThreads, 2) matmul_floats_kernel(MatmulCall call) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), g = lane / 4, t = lane % 4,
            warp = static_cast<int>(threadIdx.x / kWarpLanes);
  const int rows = call.count.of(call.rows), eights = (rows + 7) / 8, runs = (call.cols + kRun - 1) / kRun;
  run_tile<kRowTiles>(call, [&](const std::uint8_t* tile, WarpSums<kRowTiles>& out) {
    float sums[2 * kRowTiles][4] = {};
    for (int index = 0;; ++index) {
      const int run = warp + index / kRunSteps * kMmaWarps, step = run * kRunSteps + index % kRunSteps;
      if (run >= runs) break;
      Split a[4];  // (2 g, t), (2 g + 1, t), (2 g, t + 4), (2 g + 1, t + 4)
      TANDEM_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int input = step * kStep + t + 4 * half;
        const FloatPair pair = input < call.cols ? read_floats<F>(tile, input, g) : FloatPair{};
        a[2 * half] = split(pair.of[0]);
        a[2 * half + 1] = split(pair.of[1]);
      }
      TANDEM_UNROLL
      for (int eight = 0; eight < 2 * kRowTiles; ++eight) {
        if (eight >= eights) break;
        const int row = 8 * eight + g;
        Split b[2];
        TANDEM_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int input = step * kStep + t + 4 * half;
          b[half] = split(row < rows && input < call.cols ? call.x[row * call.x_stride + input] : 0.f);
        }
        const std::uint32_t a_high[4] = {a[0].high, a[1].high, a[2].high, a[3].high};
        mma_tf32_8(sums[eight], a_high, {b[0].low, b[1].low});
        if constexpr (F == Format::f32) {
          mma_tf32_8(sums[eight], {a[0].low, a[1].low, a[2].low, a[3].low}, {b[0].high, b[1].high});
        }
        mma_tf32_8(sums[eight], a_high, {b[0].high, b[1].high});
      }
    }
    TANDEM_UNROLL
    for (int eight = 0; eight < 2 * kRowTiles; ++eight) out.put(eight, sums[eight]);
  });
}

template <Format F>
void launch_floats(const MatmulCall& call, cudaStream_t stream) {
  const dim3 grid(tile_count(call)), block(kMmaThreads);
  if (call.rows <= kRowTile) {
    launch(matmul_floats_kernel<F, 1>, grid, block, 0, stream, call);
  } else {
    launch(matmul_floats_kernel<F, kMaxPassRows / kRowTile>, grid, block, 0, stream, call);
  }
}

}  // namespace

void matmul_floats(const MatmulCall& call, cudaStream_t stream) {
  with_float_format(call.format, [&]<Format F>() { launch_floats<F>(call, stream); });
}

}  // namespace tandem::TANDEM_GPU
