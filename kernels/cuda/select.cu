// The one place where CUB is called.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/select.h"

namespace tandem::cuda {
namespace {

struct StartOfRow {
  std::int64_t count;
  __host__ __device__ std::int64_t operator()(int row) const { return row * count; }
};

auto row_starts(std::int64_t count) {
  return thrust::make_transform_iterator(thrust::make_counting_iterator(0), StartOfRow{count});
}

// Each call below twice: with null scratch CUB says how many bytes it needs.
cudaError_t sort(void* scratch, std::size_t& bytes, const std::uint64_t* keys, std::uint64_t* sorted, int rows,
                 int count, cudaStream_t stream) {
  const auto starts = row_starts(count);
  return cub::DeviceSegmentedRadixSort::SortKeysDescending(scratch, bytes, keys, sorted, std::int64_t{rows} * count,
                                                           rows, starts, starts + 1, 0, 64, stream);
}

cudaError_t scan(void* scratch, std::size_t& bytes, const std::uint64_t* weights, std::uint64_t* sums, int count,
                 cudaStream_t stream) {
  return cub::DeviceScan::InclusiveSum(scratch, bytes, weights, sums, count, stream);
}

}  // namespace

Select::Select(int max_rows, int max_keys, cudaStream_t stream)
    : stream_(stream), sorted_(std::size_t(max_rows) * max_keys * sizeof(std::uint64_t)) {
  std::size_t sorting = 0, scanning = 0;
  auto* keys = sorted_.as<std::uint64_t>();
  check_cuda(sort(nullptr, sorting, keys, keys, max_rows, max_keys, stream), "size of a sort");
  check_cuda(scan(nullptr, scanning, keys, keys, max_rows * max_keys, stream), "size of a scan");
  scratch_ = DeviceMemory(std::max({sorting, scanning, std::size_t{1}}));
}

void Select::sort_keys(std::uint64_t* keys, int rows, int count) {
  std::size_t bytes = scratch_.bytes();
  check_cuda(sort(scratch_.data(), bytes, keys, sorted_.as<std::uint64_t>(), rows, count, stream_), "sort of rows");
  copy_within(keys, sorted_.data(), std::size_t(rows) * count * sizeof(std::uint64_t), stream_);
}

void Select::inclusive_sum(std::uint64_t* sums, const std::uint64_t* weights, int count) {
  std::size_t bytes = scratch_.bytes();
  check_cuda(scan(scratch_.data(), bytes, weights, sums, count, stream_), "sums of weights");
}

}  // namespace tandem::cuda
