// A tile of 16 outputs for many rows: the loop over groups of inputs and register blocks of rows, common to the integer
// formats.
//
// Thread mapping: a thread owns whole tiles; it reads each tile once, front to back, for up to 128 rows. Register
// blocks hold up to 8 rows, split evenly (12 = 6 + 6). Where several blocks follow each other, the first one unpacks
// the codes of a group into a 4 KB buffer that stays in L1 and the others read that. Integer sums are exact and the
// float operations of one (row, output) come in the order of the groups, whatever the row count.
#pragma once
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/tile.h"

namespace tandem::cpu {
namespace {

constexpr int kPrefetchBytes = 8192;  // 8 to 64 KB ahead are equal on Zen 4, 4 KB is worse

enum class Unpack : std::uint8_t { direct, fill, reuse };

// One group of 16 outputs x M rows: sums[M][16] += tile group . acts. Prefetches `ahead` bytes behind what it reads.
template <typename Acts>
using GroupKernel = void (*)(const std::uint8_t* tile, int sub_blocks, const Acts* acts, float* sums,
                             std::uint8_t* codes, int ahead);

// 1, 2, .. kBlockRows as template arguments.
template <int... I>
struct RowCounts {};
template <int N, int... I>
struct CountTo : CountTo<N - 1, N, I...> {};
template <int... I>
struct CountTo<0, I...> {
  using Type = RowCounts<I...>;
};
using AllRowCounts = CountTo<kBlockRows>::Type;

// Several row blocks are split evenly, so the first holds more than half of kBlockRows and none less than half.
template <int M, Unpack U>
constexpr bool is_used() {
  return U == Unpack::direct || M > kBlockRows / 2 || (U == Unpack::reuse && M == kBlockRows / 2);
}

// The kernels of one format, by rows - 1; null for those that never run.
template <typename Acts>
struct KernelSet {
  GroupKernel<Acts> direct[kBlockRows], fill[kBlockRows], reuse[kBlockRows];
  int group_bytes, pair_bytes;
  bool shares_codes;  // several row blocks share unpacked codes
  int few_rows;       // up to so many rows some cores read ahead better alone: TileCall::few_rows_ahead decides
};

[[gnu::always_inline]] inline void prefetch(const std::uint8_t* p, int bytes) {
  for (int i = 0; i < bytes; i += 64) prefetch_line(p + i);
}

template <int N>
[[gnu::always_inline]] inline void keep_codes(std::uint8_t* codes, const U8x64* w) {
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) store_codes(codes + 64 * i, w[i]);
}
template <int N>
[[gnu::always_inline]] inline void reuse_codes(const std::uint8_t* codes, U8x64* w) {
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) w[i] = load_codes(codes + 64 * i);
}

inline void write_tile(const TileCall& call, const float* sums) {
  const F32x16 bias = call.bias ? load_first(call.bias, call.outputs) : zeros();
  for (int r = 0; r < call.rows; ++r) {
    const F32x16 y = call.bias ? add(load(sums + 16 * r), bias) : load(sums + 16 * r);
    store_first(call.out + r * call.out_stride, y, call.outputs);
  }
}

template <typename Acts>
inline void matmul_tile(const TileCall& call, const KernelSet<Acts>& set) {
  alignas(64) float sums[kMaxTileRows * 16];
  alignas(64) std::uint8_t codes[4096];
  std::memset(sums, 0, sizeof(float) * 16 * static_cast<std::size_t>(call.rows));
  const int parts = (call.rows + kBlockRows - 1) / kBlockRows;
  const int rows_big = (call.rows + parts - 1) / parts, parts_big = call.rows - parts * (rows_big - 1);
  const bool share = parts > 1 && set.shares_codes;
  const auto first = share ? set.fill[rows_big - 1] : set.direct[rows_big - 1];
  const auto big = share ? set.reuse[rows_big - 1] : first;
  const auto small = rows_big == 1 ? big : share ? set.reuse[rows_big - 2] : set.direct[rows_big - 2];

  const int ahead = call.rows > set.few_rows ? kPrefetchBytes : call.few_rows_ahead;

  const std::uint8_t* tile = call.tile;
  const Acts* acts = reinterpret_cast<const Acts*>(call.acts);
  const int blocks = (call.cols + kSubBlock - 1) / kSubBlock;
  for (int b = 0; b < blocks; b += 8, acts += call.act_rows) {
    const int n = blocks - b < 8 ? (blocks - b + 1) / 2 * 2 : 8;
    first(tile, n, acts, sums, codes, ahead);
    int r = rows_big;
    for (int p = 1; p < parts_big; ++p, r += rows_big) big(tile, n, acts + r, sums + 16 * r, codes, ahead);
    for (int p = parts_big > 1 ? parts_big : 1; p < parts; ++p, r += rows_big - 1)
      small(tile, n, acts + r, sums + 16 * r, codes, ahead);
    tile += n == 8 ? set.group_bytes : n / 2 * set.pair_bytes;
  }
  write_tile(call, sums);
}

}  // namespace
}  // namespace tandem::cpu
