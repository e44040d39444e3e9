// Ops that go row by row or value by value. Rows are device memory, `count` says how many are there; calls are queued.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/row_count.h"
#include "src/base/tensor.h"

namespace tandem::TANDEM_GPU {

// out = x / sqrt(mean(x^2) + epsilon) * gain. out may be x. With `acts.codes` also quantise_rows(acts, out).
void rms_norm(Rows out, Rows x, const float* gain, float epsilon, QuantisedRows acts, RowCount count,
              cudaStream_t stream);
// hidden += x; out = rms_norm(hidden), with the bits of the two ops. out may be x.
void add_rms_norm(Rows out, Rows hidden, Rows x, const float* gain, float epsilon, QuantisedRows acts, RowCount count,
                  cudaStream_t stream);

void gated(Rows out, Rows gate, Rows up, Gate activation, RowCount count, cudaStream_t stream);
void add(Rows y, Rows x, RowCount count, cudaStream_t stream);
void scale(Rows x, float factor, RowCount count, cudaStream_t stream);
void soft_cap(Rows x, float cap, RowCount count, cudaStream_t stream);
// out[i] = x[rows[i]]; `rows` is device memory and `count` that of `out`, out and x do not overlap except where they
// are one row.
void gather_rows(Rows out, Rows x, const int* rows, RowCount count, cudaStream_t stream);

// Inputs of a prefill's product as f16 or bf16, [x.rows, x.cols] without gaps. A row with values beyond 2^15 is divided
// by a power of two, scales[row], for f16; all other scales are 1.
void narrow_rows(void* out, float* scales, Rows x, Element element, cudaStream_t stream);
// y[i] = y[i] * scales[i] + bias; either may be null for none.
void widen_rows(Rows y, const float* scales, const float* bias, cudaStream_t stream);

}  // namespace tandem::TANDEM_GPU
