// The functions that exist once an instruction set. Plain pointers and structs only: a file compiled with special flags
// must not instantiate an inline function that another file could link against.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/activation.h"
#include "kernels/quant/format.h"
#include "src/base/tensor.h"

namespace tandem::cpu {

// How many bytes ahead of what it reads a pass asks for weights, as suits the machine's cores; 0 for not at all.
struct ReadAhead {
  int few_rows_l2 = 0;  // into L2, with the few rows that some cores read ahead for better alone
  int l1 = 0;           // into L1, where a kernel has issue slots left for it; 0 is the line about to be read
};

// A tile of 16 outputs times `rows` rows (at most kMaxTileRows).
struct TileCall {
  Format format;
  const std::uint8_t* tile;
  int cols;                  // inputs
  const std::uint8_t* acts;  // integer formats: [groups, act_rows] GroupActs or BlockActs
  int act_rows;
  const float* x;  // float formats: [rows, cols]
  std::ptrdiff_t x_stride;
  int rows;
  float* out;  // [rows, outputs]
  std::ptrdiff_t out_stride;
  int outputs;        // 1..16
  const float* bias;  // [outputs] or null
  ReadAhead read_ahead;
};
inline constexpr int kMaxTileRows = 128;

// Rows [first_row, last_row) of a pass, for the query heads that share one key/value head.
struct AttentionTask {
  const float* queries;  // row 0 of the pass, first head of the task
  std::ptrdiff_t query_stride;
  float* out;
  std::ptrdiff_t out_stride;
  int heads, head_dim;
  int first_row, last_row;   // at most kAttentionRows
  const std::uint8_t* keys;  // slot 0 of the key/value head
  const std::uint8_t* values;
  KvType type;
  std::ptrdiff_t slot_bytes;  // between keys, and between values
  int base;
  int ring;  // slots, where place p lies in slot p mod ring; 0 = in slot p
  float scale, soft_cap;
  int window;                      // 0 = all
  const std::uint64_t* ancestors;  // [rows of the pass] or null for causal
  float* scratch;                  // attention_scratch_floats(heads, head_dim)
};
inline constexpr int kAttentionRows = 8;
inline constexpr int kAttentionChunk = 64;  // keys

inline constexpr std::size_t attention_scratch_floats(int heads, int head_dim) {
  const std::size_t queries = static_cast<std::size_t>(heads) * kAttentionRows, padded = (head_dim + 15) / 16 * 16;
  return (kAttentionChunk * padded + queries * (2 * padded + kAttentionChunk + 3) + 15) / 16 * 16;
}

inline constexpr int kMultiplyLoopMacs = 16 * 64;

struct KernelTable {
  // A group of `count` (<= 256) inputs of one row; inputs beyond count become zeros.
  void (*quantise_group)(const float* x, int count, GroupActs* acts);
  void (*quantise_blocks)(const float* x, int count, BlockActs* acts);
  void (*matmul_group)(const TileCall&);
  void (*matmul_block)(const TileCall&);
  void (*matmul_real)(const TileCall&);
  void (*attention)(const AttentionTask&);
  void (*rms_norm)(float* out, const float* x, const float* gain, int count, float epsilon);
  void (*silu_gate)(float* out, const float* gate, const float* up, int count);
  void (*gelu_gate)(float* out, const float* gate, const float* up, int count);
  void (*add)(float* y, const float* x, int count);
  void (*scale)(float* x, float factor, int count);
  void (*soft_cap)(float* x, float cap, int count);
  void (*to_half)(std::uint8_t* out, const float* x, int count);
  void (*to_q8_0)(std::uint8_t* out, const float* x, int count);             // whole blocks of kKvBlock
  std::uint32_t (*read_lines)(const std::uint8_t* data, std::size_t bytes);  // XOR of the words, so that they are read
  std::int32_t (*multiply_loop)(int rounds);                                 // kMultiplyLoopMacs a round
};

}  // namespace tandem::cpu
