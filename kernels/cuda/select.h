// Sorting and scanning of whole rows by CUB (select.cu), and by plain loops in the emulation
// (kernels/simt/select_host.cpp): the one place where CUB is called. vocabulary.h builds the ops on them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/memory.h"

namespace tandem::TANDEM_GPU {

// Scratch of the calls below for up to `max_rows` rows of up to `max_keys` keys. Not thread-safe: one stream.
class Select {
 public:
  Select(int max_rows, int max_keys, cudaStream_t stream);

  // Sorts each row of keys [rows, count], largest first.
  void sort_keys(std::uint64_t* keys, int rows, int count);
  // sums[i] = weights[0] + .. + weights[i] modulo 2^64: exact in any order. count: up to max_rows * max_keys.
  void inclusive_sum(std::uint64_t* sums, const std::uint64_t* weights, int count);

 private:
  cudaStream_t stream_;
  DeviceMemory sorted_, scratch_;
};

}  // namespace tandem::TANDEM_GPU
