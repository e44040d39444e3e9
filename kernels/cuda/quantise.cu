// Activations to int8.
//
// Threads: a warp for each 32 inputs of a row, a lane an input; 8 rows a block. Reads 4 bytes an input, writes 1.5.
// Its inputs are in the L2, so it costs its launch; where a norm makes them, the norm does this too (pointwise.cu).
#include "kernels/cuda/quantise.cuh"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kWarps = 8;

__global__ void quantise_rows_kernel(QuantisedRows out, Rows x, RowCount count) {
  const int block = static_cast<int>(blockIdx.x),
            row = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / kWarpLanes,
            input = kSubBlock * block + static_cast<int>(threadIdx.x) % kWarpLanes;
  quantise_block(out, block, row, row < count.of(x.rows) && input < x.cols ? x.row(row)[input] : 0.f);
}

}  // namespace

void quantise_rows(const QuantisedRows& out, Rows x, RowCount count, cudaStream_t stream) {
  launch(quantise_rows_kernel, dim3(out.blocks, out.row_slots / kWarps), dim3(kWarps * kWarpLanes), 0, stream, out, x,
         count);
}

}  // namespace tandem::TANDEM_GPU
