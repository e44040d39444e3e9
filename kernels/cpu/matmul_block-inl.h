// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: one float scale per 32 weights meets one per 32 inputs.
//
// Bytes read per 16 outputs x 64 inputs: Q4_0 576, Q4_1 640, Q5_0 704, Q5_1 768, Q8_0 1,088 (see tile.h). Multiplies
// per row and 32 inputs: 8 dots, one for the product of the scales, one to add; one more for a minimum. Offsets cost
// nothing: sums start at -offset x sum(q).
//
// Measured as in matmul_group-inl.h, GMAC/s at 1, 4, 8, 128 rows: Q4_1 103, 177, 203, 219; Q5_0 74, 157, 200, 232; Q8_0
// 71, 187, 220, 223 (202 at 8 rows when its sums start from a shifted -16 x sum). Row blocks that share unpacked codes
// win 8 % (Q4_1). AVX2 at 8 rows: Q4_1 94, Q5_0 77, Q8_0 54.
// As measured on Zen 4 by the study these kernels come from: one input scale per 256 saves a multiply per 32 (0.5B T(8)
// 14.4 instead of 16.0 ms) at an rms error of 0.9-1.4 % instead of 0.6-0.8 %; with few rows two chains of 8 dots are
// latency-bound where there is little to unpack, four chains of 4 are not (28.8 -> 30.5 GB/s, Q8_0).
#pragma once
#include "kernels/cpu/matmul_tile-inl.h"

namespace tandem::cpu {
namespace {

template <Format F>
[[gnu::always_inline]] inline void unpack_block(const std::uint8_t* p, U8x64* w) {
  if constexpr (F == Format::q8_0) {
    load_bytes(p, w);
  } else {
    unpack_nibbles(p, w);
    if constexpr (Layout<F>::kFiveBits) add_fifth_bits(p + 256, w);
  }
}

// Where the sum of a sub-block starts: -offset x sum(q).
template <Format F>
[[gnu::always_inline]] inline I32x16 start_of_sum(const BlockActs& a, int j) {
  if constexpr (Layout<F>::kMinima) return zeros_int();
  if constexpr (F == Format::q8_0) return start_of_bytes(a.minus_128_sum + j);
  if constexpr (F == Format::q4_0) return shift_right<1>(splat_int(a.minus_16_sum + j));
  return splat_int(a.minus_16_sum + j);
}

template <Format F, int M, Unpack U>
void block_kernel(const std::uint8_t* tile, int sub_blocks, const BlockActs* a, float* sums, std::uint8_t* codes,
                  [[maybe_unused]] Ahead ahead) {
  using L = Layout<F>;
  constexpr int kBits = F == Format::q8_0 ? 8 : L::kFiveBits ? 5 : 4;
  F32x16 acc[M];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) acc[m] = load(sums + 16 * m);
  for (int j = 0; j < sub_blocks; j += 2) {
    const std::uint8_t* pair = tile + L::kPair / 2 * j;
    U8x64 w[16];
    if constexpr (U == Unpack::reuse && F != Format::q8_0) {
      reuse_codes<16>(codes + 512 * j, w);
    } else {
      prefetch<true>(pair, L::kPair, ahead);
      unpack_block<F>(pair, w);
      unpack_block<F>(pair + L::kCodes, w + 8);
      if constexpr (U == Unpack::fill && F != Format::q8_0) keep_codes<16>(codes + 512 * j, w);
    }
    const std::uint8_t* side = pair + 2 * L::kCodes;
    const F32x16 d0 = load_half(side), d1 = load_half(side + 32);
    F32x16 min0 = zeros(), min1 = zeros();
    if constexpr (L::kMinima) {
      min0 = load_half(side + 64);
      min1 = load_half(side + 96);
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      I32x16 even = start_of_sum<F>(a[m], j), odd = start_of_sum<F>(a[m], j + 1);
      if constexpr (M < 4) {
        dot_pair_short<kBits, 8>(even, odd, w, a[m].q + 32 * j);
      } else {
        dot_pair<kBits, 8>(even, odd, w, a[m].q + 32 * j);
      }
      acc[m] = fma(mul(d0, splat(a[m].scale[j])), to_float(even), acc[m]);
      acc[m] = fma(mul(d1, splat(a[m].scale[j + 1])), to_float(odd), acc[m]);
      if constexpr (L::kMinima) {
        acc[m] = fma(min0, splat(a[m].scaled_sum[j]), acc[m]);
        acc[m] = fma(min1, splat(a[m].scaled_sum[j + 1]), acc[m]);
      }
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) store(sums + 16 * m, acc[m]);
}

template <Format F, int M, Unpack U>
constexpr GroupKernel<BlockActs> block_kernel_of() {
  if constexpr (is_used<M, U>()) return block_kernel<F, M, U>;
  return nullptr;
}
template <Format F, int... I>
constexpr KernelSet<BlockActs> block_kernels(bool shares_codes, RowCounts<I...>) {
  return {{block_kernel_of<F, I, Unpack::direct>()...},
          {block_kernel_of<F, I, Unpack::fill>()...},
          {block_kernel_of<F, I, Unpack::reuse>()...},
          Layout<F>::kGroupBytes,
          Layout<F>::kPair,
          shares_codes,
          F == Format::q8_0 ? 0 : 1};
}

void matmul_block(const TileCall& call) {
  static constexpr auto kQ40 = block_kernels<Format::q4_0>(true, AllRowCounts{});
  static constexpr auto kQ41 = block_kernels<Format::q4_1>(true, AllRowCounts{});
  static constexpr auto kQ50 = block_kernels<Format::q5_0>(true, AllRowCounts{});
  static constexpr auto kQ51 = block_kernels<Format::q5_1>(true, AllRowCounts{});
  static constexpr auto kQ80 = block_kernels<Format::q8_0>(false, AllRowCounts{});
  switch (call.format) {
    case Format::q4_0:
      return matmul_tile(call, kQ40);
    case Format::q4_1:
      return matmul_tile(call, kQ41);
    case Format::q5_0:
      return matmul_tile(call, kQ50);
    case Format::q5_1:
      return matmul_tile(call, kQ51);
    default:
      return matmul_tile(call, kQ80);
  }
}

}  // namespace
}  // namespace tandem::cpu
