// Quantised weights times int8 activations, tiles of 16 outputs x 16 rows on integer tensor cores.
//
// Threads: a block of 8 warps for a tile of 16 outputs and all rows of the pass; warp w takes the pairs of sub-blocks
// (64 inputs) w, w + 8, ... of the tile and the warps' sums are added in order, so a row's sums depend on the number of
// inputs alone. Within a warp the 16 x 32 codes of a sub-block are one fragment (tile_fragment.cuh), multiplied with 8
// rows at a time; the integer sums are exact, then scaled and added in float. With up to 16 rows a block keeps 8
// accumulators a lane, with up to 64 rows 32.
//
// Bytes a row of weights: what the file has (Q4_K 0.578 a weight with the padding of a group), read once a pass
// whatever its rows; activations 1.5 a value, from L1. By estimate 0.6 instructions a weight to unpack and 0.9 for each
// 8 rows (float of the sum, scale, multiply-add), where an H200's memory leaves time for 4, and 8 reads of L1 for each
// 8 rows and 1,024 weights besides 8 of the weights, where it leaves time for 28: memory sets the time up to 16 rows of
// Q4_K.
//
// Lost, by estimate: weights unpacked to f16 and f16 tensor cores (2 instructions a pair of weights more, and sums
// whose order the hardware does not tell, so that no emulation could have their bits); a kernel for each number of rows
// that stages activations in shared memory (they are in L1 as it is); one warp a tile (16 tiles of a key projection
// would leave a GPU empty); Q8 scales multiplied into the codes (not exact).
#include "kernels/cuda/matmul.cuh"
#include "kernels/cuda/tile_fragment.cuh"
#include "kernels/cuda/with_format.h"

namespace tandem::TANDEM_GPU {
namespace {

// An integer in the last bits of this float's fraction: adding one to its bits and subtracting 1.5 * 2^23 converts an
// int of up to 22 bits with an addition, at four times the rate of the conversion instruction.
constexpr int kWholeBits = 0x4b400000;
constexpr float kWhole = 12582912.f;
__device__ inline float whole(int sum) { return std::bit_cast<float>(sum) - kWhole; }

__device__ inline void add_scaled(float (&sums)[4], const int (&c)[4], const float (&scale)[2], float first,
                                  float second) {
  sums[0] = fmaf(scale[0] * first, whole(c[0]), sums[0]);
  sums[1] = fmaf(scale[0] * second, whole(c[1]), sums[1]);
  sums[2] = fmaf(scale[1] * first, whole(c[2]), sums[2]);
  sums[3] = fmaf(scale[1] * second, whole(c[3]), sums[3]);
}

// One sub-block of the weights times 8 rows: `acts` [8] of them, `codes` [8, 32].
template <Format F>
__device__ inline void multiply(float (&sums)[4], const Codes& a, const Scales& scales, const std::int8_t* codes,
                                const ActBlock* acts, int g, int t) {
  const uint2 b = *reinterpret_cast<const uint2*>(codes + 32 * g + 8 * t);
  const ActBlock first = acts[2 * t], second = acts[2 * t + 1];
  constexpr int kOffset = CodeRule<F>::kOffset;
  if constexpr (CodeRule<F>::kHalves) {
    int low[4], high[4];
    TANDEM_UNROLL
    for (int i = 0; i < 4; ++i) {
      low[i] = kWholeBits - kOffset * (i % 2 == 0 ? first : second).sum_low;
      high[i] = kWholeBits - kOffset * (i % 2 == 0 ? first : second).sum_high;
    }
    mma_bytes_16(low, {a.word[0], a.word[1]}, {b.x});
    mma_bytes_16(high, {a.word[2], a.word[3]}, {b.y});
    add_scaled(sums, low, scales.scale[0], first.scale, second.scale);
    add_scaled(sums, high, scales.scale[1], first.scale, second.scale);
  } else {
    int c[4];
    TANDEM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const ActBlock& row = i % 2 == 0 ? first : second;
      c[i] = kWholeBits - kOffset * (row.sum_low + row.sum_high);
    }
    mma_bytes_32(c, a.word, {b.x, b.y});
    add_scaled(sums, c, scales.scale[0], first.scale, second.scale);
    if constexpr (CodeRule<F>::kMinima) {
      sums[0] = fmaf(-scales.minimum[0], first.scaled_sum, sums[0]);
      sums[1] = fmaf(-scales.minimum[0], second.scaled_sum, sums[1]);
      sums[2] = fmaf(-scales.minimum[1], first.scaled_sum, sums[2]);
      sums[3] = fmaf(-scales.minimum[1], second.scaled_sum, sums[3]);
    }
  }
}

template <Format F>
__device__ inline void read_pair(RawCodes<F> (&raw)[2], const std::uint8_t* tile, int pair, int g, int t) {
  const PairPlace<F> place(tile, pair);
  raw[0].read(place.codes, g, t);
  raw[1].read(place.codes + Layout<F>::kCodes, g, t);
}

template <Format F, int kRowTiles>
__global__ void __launch_bounds__(kMmaThreads, 2) matmul_codes_kernel(MatmulCall call) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), g = lane / 4, t = lane % 4,
            warp = static_cast<int>(threadIdx.x / kWarpLanes);
  const int eights = (call.count.of(call.rows) + 7) / 8, pairs = call.acts.blocks / 2;
  run_tile<kRowTiles>(call, [&](const std::uint8_t* tile, WarpSums<kRowTiles>& out) {
    float sums[2 * kRowTiles][4] = {};
    RawCodes<F> next[2];
    if (warp < pairs) read_pair(next, tile, warp, g, t);
    for (int pair = warp; pair < pairs; pair += kMmaWarps) {
      const RawCodes<F> raw[2] = {next[0], next[1]};
      if (pair + kMmaWarps < pairs) read_pair(next, tile, pair + kMmaWarps, g, t);
      const PairPlace<F> place(tile, pair);
      TANDEM_UNROLL
      for (int j = 0; j < 2; ++j) {
        const Codes codes = unpack(raw[j], t);
        const Scales scales = read_scales<F>(place.side, place.group_end, j, g);
        const std::size_t first = static_cast<std::size_t>(2 * pair + j) * call.acts.row_slots;
        TANDEM_UNROLL
        for (int eight = 0; eight < 2 * kRowTiles; ++eight) {
          if (eight >= eights) break;
          const std::size_t at = first + 8 * eight;
          multiply<F>(sums[eight], codes, scales, call.acts.codes + 32 * at, call.acts.sums + at, g, t);
        }
      }
    }
    TANDEM_UNROLL
    for (int eight = 0; eight < 2 * kRowTiles; ++eight) out.put(eight, sums[eight]);
  });
}

template <Format F>
void launch_codes(const MatmulCall& call, cudaStream_t stream) {
  const dim3 grid(tile_count(call)), block(kMmaThreads);
  if (call.rows <= kRowTile) {
    launch(matmul_codes_kernel<F, 1>, grid, block, 0, stream, call);
  } else {
    launch(matmul_codes_kernel<F, kMaxPassRows / kRowTile>, grid, block, 0, stream, call);
  }
}

}  // namespace

void matmul_codes(const MatmulCall& call, cudaStream_t stream) {
  with_code_format(call.format, [&]<Format F>() { launch_codes<F>(call, stream); });
}

}  // namespace tandem::TANDEM_GPU
