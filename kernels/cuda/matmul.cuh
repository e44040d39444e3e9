// What the two product kernels (matmul_codes.cu, matmul_floats.cu) share: which tile a block has, and the sum over its
// warps.
#pragma once
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/quant/tile.h"

namespace tandem::TANDEM_GPU {

// Tiles of a call, part after part; those of a gated call stand for both parts.
constexpr int tiles_of(const MatmulPart& part) { return (part.outputs + kTileOutputs - 1) / kTileOutputs; }
constexpr int tile_count(const MatmulCall& call) {
  int tiles = tiles_of(call.parts[0]);
  for (int i = 1; i < call.part_count && call.gate == Gate::none; ++i) tiles += tiles_of(call.parts[i]);
  return tiles;
}

// The sums of 16 outputs and the rows of the pass, one set a warp, added in the order of the warps.
template <int kRowTiles>
class WarpSums {
 public:
  static constexpr int kRows = kRowTiles * kRowTile;
  static constexpr int kElements = kRows * kTileOutputs;

  __device__ WarpSums() {
    STATIC_SHARED(float, storage, kMmaWarps* kElements);
    sums_ = storage;
  }
  // A lane's results of row tile `eight` (8 rows), as in mma.cuh, outputs 2 g and 2 g + 1 of the tile.
  __device__ void put(int eight, const float (&c)[4]) {
    const int lane = static_cast<int>(threadIdx.x % kWarpLanes), g = lane / 4, t = lane % 4;
    float* const own = sums_ + threadIdx.x / kWarpLanes * kElements;
    for (int i = 0; i < 4; ++i) own[(8 * eight + 2 * t + i % 2) * kTileOutputs + 2 * g + i / 2] = c[i];
  }
  // Of element row * 16 + output.
  __device__ float total(int element) const {
    float sum = sums_[element];
    for (int warp = 1; warp < kMmaWarps; ++warp) sum += sums_[warp * kElements + element];
    return sum;
  }

 private:
  float* sums_;
};

// Runs products(tile address, sums) for the tile of this block and writes its results.
template <int kRowTiles, typename Products>
__device__ inline void run_tile(const MatmulCall& call, const Products& products) {
  using Sums = WarpSums<kRowTiles>;
  constexpr int kOwn = Sums::kElements / kMmaThreads;
  int tile = static_cast<int>(blockIdx.x), part = 0;
  if (call.gate == Gate::none) {
    for (; tile >= tiles_of(call.parts[part]); ++part) tile -= tiles_of(call.parts[part]);
  }
  const int last = call.gate == Gate::none ? part : 1;
  const int rows = call.count.of(call.rows);
  float gates[kOwn] = {};
  for (;; ++part) {
    const MatmulPart& matrix = call.parts[part];
    Sums sums;
    products(matrix.tiles + static_cast<std::size_t>(tile) * call.tile_bytes, sums);
    __syncthreads();
    TANDEM_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int element = static_cast<int>(threadIdx.x) + i * kMmaThreads, row = element / kTileOutputs,
                output = tile * kTileOutputs + element % kTileOutputs;
      if (row >= rows || output >= matrix.outputs) continue;
      const float value = sums.total(element) + (matrix.bias != nullptr ? matrix.bias[output] : 0.f);
      if (part < last) {
        gates[i] = value;
      } else {
        const MatmulPart& to = call.parts[call.gate == Gate::none ? part : 0];
        to.out[row * to.out_stride + output] =
            call.gate == Gate::none ? value : gated_value(gates[i], value, call.gate);
      }
    }
    if (part == last) return;
    __syncthreads();  // all have read the sums before the second matrix overwrites them
  }
}

}  // namespace tandem::TANDEM_GPU
