// A tile of 16 outputs for many rows: the loop over groups of inputs and register blocks of rows, common to the integer
// formats.
//
// Thread mapping: a thread owns whole tiles; it reads each tile once, front to back, for up to 128 rows. Register
// blocks hold up to 8 rows, split evenly (12 = 6 + 6). Where several blocks follow each other, the first one unpacks
// the codes of a group into a 4 KB buffer that stays in L1 and the others read that. Integer sums are exact and the
// float operations of one (row, output) come in the order of the groups, whatever the row count.
//
// Reading ahead, as streaming 800 MB of Q4_K over plain reading at 1, 4, 8 rows (Xeon, family 6 model 207, two
// threads): each line into L2 8 KB ahead and, right behind that request, another into L1 2 KB ahead: 1.03, 1.09, -
// (from six rows on the L1 requests cost more than they bring: 1.35 instead of 1.28 at eight). Lost: L2
// alone 1.08, 1.16, 1.28; all L2 requests of a burst before its L1 requests 1.03, 1.17, 1.31; L1 alone, 8 KB
// ahead 1.13, 1.25, 1.37; non-temporal 2 KB ahead 1.8, 1.6, 2.0; requests spread among the dots instead of bursts, 16
// to 64 KB ahead: equal. Elsewhere: two tiles for each broadcast of an input equal (286 GMAC/s a core at 128 rows); 700
// to 1,400 KB of activations a chunk equal to 448 KB at 512 rows.
#pragma once
#include "kernels/cpu/kernel_table.h"
#include "kernels/quant/tile.h"

namespace tandem::cpu {
namespace {

constexpr int kAheadInL2 = 8192;  // 8 to 64 KB ahead are equal, 4 KB is worse

enum class Unpack : std::uint8_t { direct, fill, reuse };

// What a pass asks for while it reads, bytes ahead.
struct Ahead {
  int l2, l1;
};

// One group of 16 outputs x M rows: sums[M][16] += tile group . acts.
template <typename Acts>
using GroupKernel = void (*)(const std::uint8_t* tile, int sub_blocks, const Acts* acts, float* sums,
                             std::uint8_t* codes, Ahead ahead);

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
  int alone_rows;     // up to so many rows some cores read ahead better alone: ReadAhead::few_rows_l2 decides
};

// kL1: also into L1. A constant, because a branch here slows the kernels of many rows by a tenth.
template <bool kL1>
[[gnu::always_inline]] inline void prefetch(const std::uint8_t* p, int bytes, Ahead ahead) {
  for (int i = 0; i < bytes; i += 64) {
    prefetch_l2(p + ahead.l2 + i);
    if constexpr (kL1) prefetch_l1(p + ahead.l1 + i);
  }
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

// The lines of `out` that rows [first, first + count) will be written to.
inline void prefetch_outputs(const TileCall& call, int first, int count) {
  for (int r = first; r < first + count; ++r) {
    prefetch_l1(reinterpret_cast<const std::uint8_t*>(call.out + r * call.out_stride));
  }
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

  const Ahead ahead{call.rows > set.alone_rows ? kAheadInL2 : call.read_ahead.few_rows_l2, call.read_ahead.l1};

  const std::uint8_t* tile = call.tile;
  const Acts* acts = reinterpret_cast<const Acts*>(call.acts);
  const int blocks = (call.cols + kSubBlock - 1) / kSubBlock;
  for (int b = 0; b < blocks; b += 8, acts += call.act_rows) {
    const int n = blocks - b < 8 ? (blocks - b + 1) / 2 * 2 : 8;
    first(tile, n, acts, sums, codes, ahead);
    const bool last = b + 8 >= blocks;
    int r = rows_big;
    for (int p = 1; p < parts; ++p) {
      const int rows = p < parts_big ? rows_big : rows_big - 1;
      if (last) prefetch_outputs(call, r, rows);
      (p < parts_big ? big : small)(tile, n, acts + r, sums + 16 * r, codes, ahead);
      r += rows;
    }
    tile += n == 8 ? set.group_bytes : n / 2 * set.pair_bytes;
  }
  write_tile(call, sums);
}

}  // namespace
}  // namespace tandem::cpu
