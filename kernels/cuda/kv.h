// Rotation of heads and the cache of keys and values. All pointers are device memory, `count` says how many rows are
// there; calls are queued.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"
#include "kernels/cuda/row_count.h"

namespace tandem::TANDEM_GPU {

// In place; positions [heads.rows].
void rope(Rows heads, int head_dim, const Position* positions, const RopeTable& table, RowCount count,
          cudaStream_t stream);

// Writes rows into places *base, *base + 1, ...
void store_kv(const KvLayer& layer, const int* base, Rows keys, Rows values, RowCount count, cudaStream_t stream);

// Both at once: rotates queries in place, and keys on their way into the cache only.
void rope_store_kv(Rows queries, Rows keys, Rows values, const Position* positions, const RopeTable& table,
                   const KvLayer& layer, const int* base, RowCount count, cudaStream_t stream);

// Place *base + path[i] moves to *base + i; `path` [*length] is strictly ascending with path[i] >= i.
void move_kv(const KvLayer& layer, const int* base, const int* path, const int* length, cudaStream_t stream);

// Heads of up to this size, multiples of 4.
inline constexpr int kMaxHeadDim = 256;
// Keys that one block goes through before its result is added to the others', in order.
inline constexpr int kSplit = 256;

struct AttentionCall {
  Rows out, queries;  // [rows, heads * head_dim]
  KvLayer layer;
  AttentionParams params;
  RowCount count;
  const int* base;                 // places of the cache before the pass
  const std::uint64_t* ancestors;  // [rows], null for causal
  int first_split, splits;         // those that some row of the pass sees
  float* partial;  // [splits, rows * heads, head_dim + 2]; null: each block goes through all splits itself
};

// Bytes of `partial`.
constexpr std::size_t partial_bytes(int splits, int rows, int heads, int head_dim) {
  return sizeof(float) * splits * rows * heads * (head_dim + 2);
}

void attention(const AttentionCall& call, cudaStream_t stream);

}  // namespace tandem::TANDEM_GPU
