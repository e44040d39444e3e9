// Sums and maxima of a warp or a block, always combined in one order: the same inputs give the same bits, and every
// thread gets the result.
#pragma once
#include "kernels/cuda/launch.h"

namespace tandem::TANDEM_GPU {

// A butterfly: both lanes of a pair add the same two numbers, so that all lanes agree.
template <typename T>
__device__ inline T warp_sum(T value) {
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, distance);
  }
  return value;
}

// Of no NaN.
template <typename T>
__device__ inline T warp_max(T value) {
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(kWholeWarp, value, distance);
    value = other > value ? other : value;
  }
  return value;
}

// One value a warp, the same in all its threads, put side by side for every thread to read; `slots` holds kThreads
// / 32. The barrier in front lets the previous call's readers finish.
template <int kThreads, typename T>
__device__ inline void share_of_warps(T* slots, T value) {
  static_assert(kThreads % kWarpLanes == 0 && kThreads <= 1024);
  __syncthreads();
  if (threadIdx.x % kWarpLanes == 0) slots[threadIdx.x / kWarpLanes] = value;
  __syncthreads();
}

// Called by all kThreads threads of a one-dimensional block. Warps are added in ascending order.
template <int kThreads, typename T>
__device__ inline T block_sum(T value) {
  STATIC_SHARED(T, slots, kThreads / kWarpLanes);
  share_of_warps<kThreads>(slots, warp_sum(value));
  T total = slots[0];
  for (int warp = 1; warp < kThreads / kWarpLanes; ++warp) total += slots[warp];
  return total;
}

// Called by all kThreads threads of a one-dimensional block. Of no NaN.
template <int kThreads, typename T>
__device__ inline T block_max(T value) {
  STATIC_SHARED(T, slots, kThreads / kWarpLanes);
  share_of_warps<kThreads>(slots, warp_max(value));
  T largest = slots[0];
  for (int warp = 1; warp < kThreads / kWarpLanes; ++warp) largest = slots[warp] > largest ? slots[warp] : largest;
  return largest;
}

}  // namespace tandem::TANDEM_GPU
