// How many rows a launch has, told by device memory: launches are made for whole tiles of rows, so that passes of as
// many tiles differ in no argument.
#pragma once
#include <cstdint>

#include "kernels/cuda/platform.h"

namespace tandem::TANDEM_GPU {

// The first *count * factor rows are there; all where count is null. Every kernel that takes one leaves rows behind
// them alone.
struct RowCount {
  const int* count;     // device memory
  std::int64_t factor;  // 64 bits: arguments are compared byte by byte, gaps would be too

  // For device code: of the `most` rows that the launch was made for.
  constexpr int of(int most) const { return count == nullptr ? most : static_cast<int>(*count * factor); }
  constexpr bool has(int row) const { return count == nullptr || row < *count * factor; }
};

}  // namespace tandem::TANDEM_GPU
