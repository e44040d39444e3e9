// From rows of a model file to tiles (see tile.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/quant/format.h"

namespace tandem {

// A matrix as its file stores it, [rows, cols]; a row is cols / block_values blocks.
struct SourceMatrix {
  Format format;
  int rows, cols;
  const std::byte* data;
};

// Writes tile `index` (outputs 16 index ..) to `tile`, tile_bytes(format, cols) of zeroed memory.
void repack_tile(const SourceMatrix& source, int index, std::uint8_t* tile);

}  // namespace tandem
