// How a kernel is written and started, the same for nvcc and for the emulation. For .cu and .cuh files only.
//
// Rules of kernel files: kernels start through launch(), never <<<>>>; shared memory comes from the two macros, never
// from __shared__; no inline PTX outside #ifdef __CUDACC__; atomics on integers only; warp primitives name their mask.
#pragma once
#include <cstddef>

#include "kernels/cuda/platform.h"

#ifndef TANDEM_SIMT
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace tandem::cuda {

// Memory of the whole block, `shared_bytes` of its launch, aligned to 16.
#define DYNAMIC_SHARED(T, name)                                          \
  extern __shared__ __align__(16) unsigned char tandem_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(tandem_dynamic_shared)

// `count` elements of the whole block. A function that is called twice by a kernel finds the same memory.
#define STATIC_SHARED(T, name, count)   \
  __shared__ T name##_storage[(count)]; \
  T* const name = name##_storage

// Without a special attribute a kernel gets this much shared memory.
inline constexpr std::size_t kDefaultSharedBytes = 48 << 10;

// Queues one run of `kernel` on `stream`. Arguments convert to the kernel's parameters. Throws Error(device) for a
// launch that the device refuses; faults while it runs show at the next synchronisation.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            Arguments... arguments) {
  if (shared_bytes > kDefaultSharedBytes) {
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
        "cudaFuncSetAttribute");
  }
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(arguments)...);
  check_cuda(cudaGetLastError(), "a kernel launch");
}

}  // namespace tandem::cuda

#else
#include "kernels/simt/simt.h"
#endif

namespace tandem::TANDEM_GPU {

inline constexpr unsigned kWholeWarp = 0xffffffffu;
inline constexpr int kWarpLanes = 32;

}  // namespace tandem::TANDEM_GPU
