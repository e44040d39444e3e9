// The host twin of kernels/cuda/select.cu: the same results by the standard library.
#include <algorithm>
#include <functional>
#include <numeric>

#include "kernels/cuda/select.h"
#include "kernels/simt/stream.h"

namespace tandem::cuda_simt {

Select::Select(int, int, cudaStream_t stream) : stream_(stream) {}

void Select::sort_keys(std::uint64_t* keys, int rows, int count) {
  simt::enqueue(stream_, [=] {
    for (int row = 0; row < rows; ++row) {
      std::uint64_t* const first = keys + static_cast<std::ptrdiff_t>(row) * count;
      std::sort(first, first + count, std::greater<>());
    }
  });
}

void Select::inclusive_sum(std::uint64_t* sums, const std::uint64_t* weights, int count) {
  simt::enqueue(stream_, [=] { std::partial_sum(weights, weights + count, sums); });
}

}  // namespace tandem::cuda_simt
