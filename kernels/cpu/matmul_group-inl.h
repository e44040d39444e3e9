// Q4_K, Q5_K and Q6_K: integer sums of sub-blocks, scaled in integers, one float scale per 256.
//
// Bytes read per 16 outputs x 256 inputs: Q4_K 2,368, Q5_K 2,880, Q6_K 3,392 (see tile.h). Multiplies per row on top of
// the 64 dot instructions: Q4_K 4 scales + 4 minima + 3 float, Q5_K 4 more (its offset), Q6_K 8 + 2. Two sums of one
// sub-block each are packed as int16 pairs and meet their pair of scales in one instruction; they cannot overflow
// because the quantiser bounds the |q| of any 16 inputs (activation.h).
//
// Measured, hot loop of one core, GMAC/s at 1, 4, 8, 128 rows (Xeon, family 6 model 207, 3.1 GHz, where a loop of only
// the dot instruction gives 378 from registers and 333 with its broadcast operand): Q4_K 109, 210, 241, 256; Q5_K 74,
// 158, 194, 231; Q6_K 66, 155, 209, 265. AVX2: Q4_K 67, 92, 98, 98; Q6_K 28, 57, 69, 85.
// Row blocks that share unpacked codes win there (Q4_K 222 -> 235; on Zen 4 they lost 3 %). Sums must be cleared in an
// unrolled loop: as a memset they live in memory (235 -> 256).
// Lost on Zen 4, as measured by the study these kernels come from (GMAC/s per core, 8 rows): 32-bit multiply and add
// per sub-block 180 instead of 190 (Q4_K) and 165 instead of 175 (Q6_K); conversion and float FMA per sub-block 184; 12
// or 16 rows a register block 180 and 178; separate broadcasts of the inputs cost 13 % at 4 rows; prefetch into L1 12 %
// at 8 rows.
#pragma once
#include "kernels/cpu/matmul_tile-inl.h"

namespace tandem::cpu {
namespace {

// Q4_K and Q5_K. Q5_K's codes take part as code - 16, so that a sum of 32 fits an int16; 16 x scale x sum(q) is added
// back.
template <Format F, int M, Unpack U>
void group_kernel_minima(const std::uint8_t* tile, int, const GroupActs* a, float* sums, std::uint8_t* codes,
                         [[maybe_unused]] Ahead ahead) {
  using L = Layout<F>;
  constexpr bool kFive = L::kFiveBits, kFewRows = U == Unpack::direct && M <= 5;
  constexpr bool kInterleave = M >= kInterleavedRows && !kFewRows;
  I32x16 acc[M];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) acc[m] = zeros_int();
  for (int j = 0; j < 4; ++j) {
    const std::uint8_t* pair = tile + L::kPair * j;
    std::uint8_t* const unpacked = codes + 1024 * j;
    U8x64 w[16];
    if constexpr (U != Unpack::reuse) {
      prefetch<kFewRows>(tile + L::kGroupBytes / 4 / 16 * 16 * j, L::kGroupBytes / 4 + 63, ahead);
      unpack_nibbles(pair, w);
      unpack_nibbles(pair + L::kCodes, w + 8);
      if constexpr (kFive) {
        add_fifth_bits(pair + 256, w);
        add_fifth_bits(pair + L::kCodes + 256, w + 8);
      }
      if constexpr (U == Unpack::fill || kInterleave) keep_codes<16>(unpacked, w);
    } else if constexpr (!kInterleave) {
      reuse_codes<16>(unpacked, w);
    }
    const I16x32 scales = load_unsigned_pairs(pair + 2 * L::kCodes);
    I32x16 even[M], odd[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      even[m] = kFive ? splat_int(a[m].minus_16_sum32 + 2 * j) : zeros_int();
      odd[m] = kFive ? splat_int(a[m].minus_16_sum32 + 2 * j + 1) : zeros_int();
      if constexpr (!kInterleave) {
        dot_pair<kFive ? 5 : 4, 8>(even[m], odd[m], w, a[m].q + 64 * j);
        acc[m] = add_scaled_pair(acc[m], even[m], odd[m], scales);
      }
    }
    if constexpr (kInterleave) {
      dot_rows<kFive ? 5 : 4, 8, M>(even, odd, unpacked, [&](int m) { return a[m].q + 64 * j; });
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) acc[m] = add_scaled_pair(acc[m], even[m], odd[m], scales);
    }
  }
  const F32x16 d = load_half(tile + L::kGroupEnd), dmin = load_half(tile + L::kGroupEnd + 32);
  I16x32 scales[4], minima[4];
  for (int j = 0; j < 4; ++j) {
    const std::uint8_t* side = tile + L::kPair * j + 2 * L::kCodes;
    if constexpr (kFive) scales[j] = load_unsigned_pairs(side);
    minima[j] = load_unsigned_pairs(side + 32);
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
    I32x16 below = zeros_int();
    for (int j = 0; j < 4; ++j) below = add_pair_product(below, minima[j], a[m].sum32 + 2 * j);
    I32x16 total = acc[m];
    if constexpr (kFive) {
      I32x16 offset = zeros_int();
      for (int j = 0; j < 4; ++j) offset = add_pair_product(offset, scales[j], a[m].sum32 + 2 * j);
      total = add_int(total, shift_left<4>(offset));
    }
    const F32x16 y = fnma(dmin, to_float(below), mul(d, to_float(total)));
    store(sums + 16 * m, fma(splat(a[m].scale), y, load(sums + 16 * m)));
  }
}

template <int M, Unpack U>
void group_kernel_six_bits(const std::uint8_t* tile, int, const GroupActs* a, float* sums, std::uint8_t* codes,
                           [[maybe_unused]] Ahead ahead) {
  using L = Layout<Format::q6_k>;
  constexpr bool kInterleave = M >= kInterleavedRows;
  I32x16 acc[M];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) acc[m] = zeros_int();
  for (int j = 0; j < 8; ++j) {
    const std::uint8_t* pair = tile + L::kPair * (j / 2);
    std::uint8_t* const unpacked = codes + 512 * j;
    U8x64 w[8];
    if constexpr (U != Unpack::reuse) {
      prefetch<true>(tile + L::kGroupBytes / 8 * j, L::kGroupBytes / 8 + 24, ahead);
      unpack_six_bits(pair + L::kCodes * (j % 2), w);
      if constexpr (U == Unpack::fill || kInterleave) keep_codes<8>(unpacked, w);
    } else if constexpr (!kInterleave) {
      reuse_codes<8>(unpacked, w);
    }
    const I16x32 scales = load_signed_pairs(pair + 2 * L::kCodes + 32 * (j % 2));
    I32x16 even[M], odd[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      even[m] = splat_int(a[m].minus_32_sum16 + 2 * j);
      odd[m] = splat_int(a[m].minus_32_sum16 + 2 * j + 1);
      if constexpr (!kInterleave) {
        dot_pair<6, 4>(even[m], odd[m], w, a[m].q + 32 * j);
        acc[m] = add_scaled_pair(acc[m], even[m], odd[m], scales);
      }
    }
    if constexpr (kInterleave) {
      dot_rows<6, 4, M>(even, odd, unpacked, [&](int m) { return a[m].q + 32 * j; });
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) acc[m] = add_scaled_pair(acc[m], even[m], odd[m], scales);
    }
  }
  const F32x16 d = load_half(tile + L::kGroupEnd);
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
    const F32x16 y = mul(d, to_float(acc[m]));
    store(sums + 16 * m, fma(splat(a[m].scale), y, load(sums + 16 * m)));
  }
}

template <Format F, int M, Unpack U>
constexpr GroupKernel<GroupActs> group_kernel() {
  if constexpr (!is_used<M, U>()) {
    return nullptr;
  } else if constexpr (F == Format::q6_k) {
    return group_kernel_six_bits<M, U>;
  } else {
    return group_kernel_minima<F, M, U>;
  }
}
template <Format F, int... I>
constexpr KernelSet<GroupActs> group_kernels(bool shares_codes, RowCounts<I...>) {
  return {{group_kernel<F, I, Unpack::direct>()...},
          {group_kernel<F, I, Unpack::fill>()...},
          {group_kernel<F, I, Unpack::reuse>()...},
          Layout<F>::kGroupBytes,
          Layout<F>::kPair,
          shares_codes,
          F == Format::q4_k ? 2 : 1};
}

void matmul_group(const TileCall& call) {
  static constexpr auto kQ4K = group_kernels<Format::q4_k>(true, AllRowCounts{});
  static constexpr auto kQ5K = group_kernels<Format::q5_k>(true, AllRowCounts{});
  static constexpr auto kQ6K = group_kernels<Format::q6_k>(true, AllRowCounts{});
  matmul_tile(call, call.format == Format::q4_k ? kQ4K : call.format == Format::q5_k ? kQ5K : kQ6K);
}

}  // namespace
}  // namespace tandem::cpu
