// Weights back from their tiles to plain rows: single rows of an embedding, and panels for the products of a prefill.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/row_count.h"
#include "kernels/quant/format.h"
#include "src/base/tensor.h"
#include "src/base/types.h"

namespace tandem::TANDEM_GPU {

// A weight [rows, cols] in device memory: tiles of 16 outputs (kernels/quant/tile.h), or values when it is a vector.
struct TiledMatrix {
  Format format;
  int rows, cols;
  const std::uint8_t* tiles;
  std::size_t tile_bytes;
};

// out[i] = row tokens[i] of the matrix, the bits of decode_blocks(). `tokens` is device memory.
void embed(Rows out, const TiledMatrix& matrix, const TokenId* tokens, RowCount count, cudaStream_t stream);

// What a prefill multiplies a weight of this format as: F32 and BF16 as they are, all others as F16.
constexpr Element panel_element(Format format) {
  return format == Format::f32 ? Element::f32 : format == Format::bf16 ? Element::bf16 : Element::f16;
}

// out [tiles * 16, cols] of panel_element(): outputs of `tiles` tiles from the first on, rounded to nearest.
void expand_panel(void* out, const TiledMatrix& matrix, int first_tile, int tiles, cudaStream_t stream);

}  // namespace tandem::TANDEM_GPU
