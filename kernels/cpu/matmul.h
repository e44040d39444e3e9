// The matmul op: quantises the input once for all its projections, then spreads tiles over the threads.
#pragma once
#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernel_table.h"

namespace tandem::cpu {

class Matmul {
 public:
  Matmul(const KernelTable& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

  // Throws Error(model) when shapes disagree. Scratch grows with the largest input seen.
  void run(std::span<const Projection> projections, Rows x);
  // gate.out = combine(gate . x, up . x), applied by the thread that made both while they are in its cache.
  using Combine = void (*)(float* out, const float* gate, const float* up, int count);
  void run_gated(const Projection& gate, const Projection& up, Rows x, Combine combine);

 private:
  // Rows go in chunks, and a chunk lies as [groups, rows of the chunk], so that it stays in L2 while all tiles pass.
  struct Chunks {
    int groups, rows;  // groups of a row, rows of a full chunk
  };
  static Chunks chunks_of(int rows, int cols);
  // Checks the call, makes room for its activations and says how its rows go in chunks.
  Chunks prepare(std::span<const Projection> projections, Rows x);
  std::uint8_t* place(std::uint8_t* acts, Chunks chunks, int total_rows, int row, int group) const;
  void quantise(Rows x, Chunks chunks, int thread);
  void multiply(std::span<const Projection> projections, Rows x, Chunks chunks, int thread);
  void multiply_gated(const Projection& gate, const Projection& up, Rows x, Chunks chunks, int thread, Combine combine);
  // Tiles [first, last) times the chunk of rows that begins at `row`.
  void tiles(const Projection& projection, Rows x, Chunks chunks, int row, int first, int last);

  const KernelTable& kernels_;
  ThreadPool& pool_;
  const ReadAhead read_ahead_ = machine_read_ahead();
  std::unique_ptr<Pages> group_acts_, block_acts_;
  std::size_t group_capacity_ = 0, block_capacity_ = 0;
  bool uses_group_ = false, uses_block_ = false;
  std::size_t total_bytes_ = 0;  // of the tiles of the call
};

}  // namespace tandem::cpu
