// Products of decode and verify passes: up to 64 rows, tiles of 16 rows of one kernel, so that a row's bits do not
// depend on the others of its pass. All pointers are device memory; calls are queued.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"
#include "kernels/cuda/row_count.h"
#include "kernels/quant/tile.h"

namespace tandem::TANDEM_GPU {

inline constexpr int kMaxPassRows = 64;
inline constexpr int kRowTile = 16;

// One sub-block of 32 inputs of one row, besides its codes.
struct alignas(16) ActBlock {
  float scale;
  float scaled_sum;       // scale x the sum of all codes: meets minima
  int sum_low, sum_high;  // of the first and the last 16 codes
};

// Activations as int8 with a scale for each 32: codes [blocks, row_slots, 32], sums [blocks, row_slots]. A block's
// codes lie in the order in which lanes read them: inputs 4 t.., then 16 + 4 t.., for t = 0..3. Rows and inputs beyond
// the pass's are zeros.
struct QuantisedRows {
  std::int8_t* codes;
  ActBlock* sums;
  int row_slots;  // whole tiles of rows
  int blocks;     // whole pairs
};

constexpr int row_slots_of(int rows) { return (rows + kRowTile - 1) / kRowTile * kRowTile; }
constexpr int act_blocks_of(int cols) { return (cols + 63) / 64 * 2; }

void quantise_rows(const QuantisedRows& out, Rows x, RowCount count, cudaStream_t stream);

// One matrix of a call.
struct MatmulPart {
  const std::uint8_t* tiles;
  const float* bias;  // null for none
  float* out;         // [rows, outputs]
  std::ptrdiff_t out_stride;
  int outputs;
};

enum class Gate : std::uint8_t { none, silu, gelu };

inline constexpr int kMaxParts = 3;

// Up to three matrices of one format over one input. With a gate there are two, and the first's out becomes
// gate(first) * second; the second's is not written.
struct MatmulCall {
  Format format;
  MatmulPart parts[kMaxParts];
  int part_count;
  Gate gate;
  int rows, cols;
  RowCount count;
  std::size_t tile_bytes;
  QuantisedRows acts;  // integer formats
  const float* x;      // float formats
  std::ptrdiff_t x_stride;
};

void matmul_codes(const MatmulCall& call, cudaStream_t stream);   // integer formats
void matmul_floats(const MatmulCall& call, cudaStream_t stream);  // F32, F16, BF16

}  // namespace tandem::TANDEM_GPU
