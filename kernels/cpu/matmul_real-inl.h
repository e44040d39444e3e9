// F32, F16 and BF16 weights with float activations.
//
// Thread mapping and bytes as for the integer formats: whole tiles of 16 outputs, 64, 32 and 32 bytes an input. Each
// (row, output) has four sums, inputs k mod 4 going to sum k mod 4, added as (0 + 1) + (2 + 3): one chain would wait
// for each FMA.
#pragma once
#include "kernels/cpu/matmul_tile-inl.h"

namespace tandem::cpu {
namespace {

template <Format F>
[[gnu::always_inline]] inline F32x16 load_weights(const std::uint8_t* tile, int k) {
  if constexpr (F == Format::f32)
    return load(reinterpret_cast<const float*>(tile) + 16 * static_cast<std::ptrdiff_t>(k));
  if constexpr (F == Format::f16) return load_half(tile + 32 * static_cast<std::ptrdiff_t>(k));
  return load_bf16(tile + 32 * static_cast<std::ptrdiff_t>(k));
}

template <Format F, int M>
void real_kernel(const TileCall& call, int row, float* sums) {
  const float* x = call.x + row * call.x_stride;
  F32x16 acc[M][4];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) acc[m][i] = zeros();
  }
  int k = 0;
  for (; k + 4 <= call.cols; k += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const F32x16 w = load_weights<F>(call.tile, k + i);
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) acc[m][i] = fma(w, splat(x[m * call.x_stride + k + i]), acc[m][i]);
    }
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    if (k + i >= call.cols) break;
    const F32x16 w = load_weights<F>(call.tile, k + i);
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) acc[m][i] = fma(w, splat(x[m * call.x_stride + k + i]), acc[m][i]);
  }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) store(sums + 16 * (row + m), add(add(acc[m][0], acc[m][1]), add(acc[m][2], acc[m][3])));
}

template <Format F>
void real_tile(const TileCall& call) {
  alignas(64) float sums[kMaxTileRows * 16];
  int r = 0;
  for (; r + 4 <= call.rows; r += 4) real_kernel<F, 4>(call, r, sums);
  switch (call.rows - r) {
    case 3:
      real_kernel<F, 3>(call, r, sums);
      break;
    case 2:
      real_kernel<F, 2>(call, r, sums);
      break;
    case 1:
      real_kernel<F, 1>(call, r, sums);
      break;
    default:
      break;
  }
  write_tile(call, sums);
}

void matmul_real(const TileCall& call) {
  switch (call.format) {
    case Format::f32:
      return real_tile<Format::f32>(call);
    case Format::f16:
      return real_tile<Format::f16>(call);
    default:
      return real_tile<Format::bf16>(call);
  }
}

}  // namespace
}  // namespace tandem::cpu
