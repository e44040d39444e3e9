// Weights as the CPU backend keeps them.
#pragma once
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/memory.h"
#include "kernels/quant/tile.h"

namespace tandem::cpu {

// A weight has tiles (matmul), raw rows (lookup, in the mapped file) or values (vector), or the first two.
class CpuWeight final : public Weight {
 public:
  using Weight::Weight;

  Piece tiles;  // [ceil(rows / 16)] tiles of tile_bytes
  std::size_t tile_bytes = 0;
  std::span<const std::byte> raw;
  std::vector<float> values;

  int tile_count() const { return (rows + kTileOutputs - 1) / kTileOutputs; }
};

// Prepares a weight; tiles are made on all threads of the pool and the file's pages released behind them.
// Throws Error(model) when the data does not fit the shape.
std::unique_ptr<CpuWeight> load_weight(const WeightSource& source, WeightUse use, Arena& arena, ThreadPool& pool);

// A weight of this backend. Throws Error(model) for another backend's.
const CpuWeight& as_cpu(const Weight& weight);

}  // namespace tandem::cpu
