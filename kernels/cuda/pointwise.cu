// Norms, gates, sums and copies of rows.
//
// Threads: norms and narrow_rows have a block of 256 for each row, whose sums are added in one order (block.cuh), so a
// row's bits do not depend on the others; the rest a thread for each value, 256 a block. Bytes a row: 4 a value and
// operand, all in the L2 during a step, where each of these costs its launch (2 us by estimate, 1 in a graph) and no
// more. That is why add and norm are one kernel, and why gates are applied where the up projection ends.
#include <cmath>

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/quantise.cuh"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kThreads = 256;

// kAdd: first hidden += x, of which the norm is then taken. The sum of squares adds what was stored. A warp's values
// are always a whole sub-block, so it quantises them as they are made; rows and sub-blocks that only fill up are zeros.
template <bool kAdd>
__global__ void rms_norm_kernel(Rows out, Rows hidden, Rows x, const float* gain, float epsilon, QuantisedRows acts,
                                RowCount count) {
  const int row = static_cast<int>(blockIdx.x), rows = count.of(hidden.rows), cols = row < rows ? hidden.cols : 0;
  if (row >= rows && acts.codes == nullptr) return;
  float* const to = out.row(row);
  float* const sum = hidden.row(row);
  const float* const from = x.row(row);
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < cols; i += kThreads) {
    if constexpr (kAdd) sum[i] += from[i];
    squares = fmaf(sum[i], sum[i], squares);
  }
  const float factor = 1.f / std::sqrt(block_sum<kThreads>(squares) / static_cast<float>(hidden.cols) + epsilon);
  const int end = acts.codes != nullptr ? acts.blocks * kSubBlock : cols;
  for (int i = static_cast<int>(threadIdx.x); i < end; i += kThreads) {
    const float value = i < cols ? sum[i] * factor * gain[i] : 0.f;
    if (i < cols) to[i] = value;
    if (acts.codes != nullptr) quantise_block(acts, i / kSubBlock, row, value);
  }
}

__device__ inline int column() { return static_cast<int>(blockIdx.x * kThreads + threadIdx.x); }

__global__ void gated_kernel(Rows out, Rows gate, Rows up, Gate activation, RowCount count) {
  const int i = column(), row = static_cast<int>(blockIdx.y);
  if (i < out.cols && count.has(row)) out.row(row)[i] = gated_value(gate.row(row)[i], up.row(row)[i], activation);
}

__global__ void add_kernel(Rows y, Rows x, RowCount count) {
  const int i = column(), row = static_cast<int>(blockIdx.y);
  if (i < y.cols && count.has(row)) y.row(row)[i] += x.row(row)[i];
}

__global__ void scale_kernel(Rows x, float factor, RowCount count) {
  const int i = column(), row = static_cast<int>(blockIdx.y);
  if (i < x.cols && count.has(row)) x.row(row)[i] *= factor;
}

__global__ void soft_cap_kernel(Rows x, float cap, RowCount count) {
  const int i = column(), row = static_cast<int>(blockIdx.y);
  if (i < x.cols && count.has(row)) x.row(row)[i] = capped(x.row(row)[i], cap);
}

__global__ void gather_rows_kernel(Rows out, Rows x, const int* rows, RowCount count) {
  const int i = column(), row = static_cast<int>(blockIdx.y);
  if (i < out.cols && count.has(row)) out.row(row)[i] = x.row(rows[row])[i];
}

template <typename Number>
__global__ void narrow_rows_kernel(Number* out, float* scales, Rows x) {
  const int row = static_cast<int>(blockIdx.x);
  const float* const from = x.row(row);
  float scale = 1;
  if constexpr (std::is_same_v<Number, __half>) {
    constexpr float kLargest = 32768;
    float peak = 0;
    for (int i = static_cast<int>(threadIdx.x); i < x.cols; i += kThreads) {
      const float size = std::fabs(from[i]);
      if (std::isfinite(size) && size > peak) peak = size;
    }
    peak = block_max<kThreads>(peak);
    while (peak > kLargest * scale) scale *= 2;
  }
  if (threadIdx.x == 0) scales[row] = scale;
  Number* const to = out + static_cast<std::size_t>(row) * x.cols;
  for (int i = static_cast<int>(threadIdx.x); i < x.cols; i += kThreads) {
    if constexpr (std::is_same_v<Number, __half>) {
      to[i] = __float2half_rn(from[i] / scale);
    } else {
      to[i] = __float2bfloat16_rn(from[i]);
    }
  }
}

__global__ void widen_rows_kernel(Rows y, const float* scales, const float* bias) {
  const int i = column(), row = static_cast<int>(blockIdx.y);
  if (i >= y.cols) return;
  const float value = y.row(row)[i] * (scales != nullptr ? scales[row] : 1.f);
  y.row(row)[i] = bias != nullptr ? value + bias[i] : value;
}

// A thread for each value of [rows, cols].
template <typename Kernel, typename... Arguments>
void launch_values(Kernel kernel, const Rows& shape, cudaStream_t stream, Arguments... arguments) {
  if (shape.rows == 0 || shape.cols == 0) return;
  launch(kernel, dim3((shape.cols + kThreads - 1) / kThreads, shape.rows), dim3(kThreads), 0, stream, arguments...);
}

template <typename Kernel>
void launch_norm(Kernel kernel, Rows out, Rows hidden, Rows x, const float* gain, float epsilon, QuantisedRows acts,
                 RowCount count, cudaStream_t stream) {
  if (x.rows == 0) return;
  const dim3 grid(acts.codes != nullptr ? acts.row_slots : x.rows);
  launch(kernel, grid, dim3(kThreads), 0, stream, out, hidden, x, gain, epsilon, acts, count);
}

}  // namespace

void rms_norm(Rows out, Rows x, const float* gain, float epsilon, QuantisedRows acts, RowCount count,
              cudaStream_t stream) {
  launch_norm(rms_norm_kernel<false>, out, x, x, gain, epsilon, acts, count, stream);
}

void add_rms_norm(Rows out, Rows hidden, Rows x, const float* gain, float epsilon, QuantisedRows acts, RowCount count,
                  cudaStream_t stream) {
  launch_norm(rms_norm_kernel<true>, out, hidden, x, gain, epsilon, acts, count, stream);
}

void gated(Rows out, Rows gate, Rows up, Gate activation, RowCount count, cudaStream_t stream) {
  launch_values(gated_kernel, out, stream, out, gate, up, activation, count);
}
void add(Rows y, Rows x, RowCount count, cudaStream_t stream) { launch_values(add_kernel, y, stream, y, x, count); }
void scale(Rows x, float factor, RowCount count, cudaStream_t stream) {
  launch_values(scale_kernel, x, stream, x, factor, count);
}
void soft_cap(Rows x, float cap, RowCount count, cudaStream_t stream) {
  launch_values(soft_cap_kernel, x, stream, x, cap, count);
}
void gather_rows(Rows out, Rows x, const int* rows, RowCount count, cudaStream_t stream) {
  launch_values(gather_rows_kernel, out, stream, out, x, rows, count);
}

void narrow_rows(void* out, float* scales, Rows x, Element element, cudaStream_t stream) {
  const dim3 grid(x.rows), block(kThreads);
  if (element == Element::f16) {
    launch(narrow_rows_kernel<__half>, grid, block, 0, stream, static_cast<__half*>(out), scales, x);
  } else {
    launch(narrow_rows_kernel<__nv_bfloat16>, grid, block, 0, stream, static_cast<__nv_bfloat16*>(out), scales, x);
  }
}

void widen_rows(Rows y, const float* scales, const float* bias, cudaStream_t stream) {
  launch_values(widen_rows_kernel, y, stream, y, scales, bias);
}

}  // namespace tandem::TANDEM_GPU
