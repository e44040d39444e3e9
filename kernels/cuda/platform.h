// What the files of this folder are compiled for: a GPU, or its emulation on the host (TANDEM_SIMT; kernels/simt/).
// Both builds of one source have their own namespace, so that one program holds both backends:
//   namespace tandem::TANDEM_GPU { ... }
// Plain types only: any host file may include this.
#pragma once
#include <driver_types.h>  // cudaStream_t, cudaError_t
#include <vector_types.h>  // dim3, float4

#include <string_view>

#ifdef TANDEM_SIMT
#define TANDEM_GPU cuda_simt
#else
#define TANDEM_GPU cuda
#endif

namespace tandem::TANDEM_GPU {

// Throws Error(device) naming `what` and the runtime's text for `status`; out of memory also names the bytes free.
[[noreturn]] void fail_cuda(cudaError_t status, std::string_view what);

// Throws Error(device) unless a call of the CUDA runtime succeeded. `what` names the call and its size.
inline void check_cuda(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) fail_cuda(status, what);
}

}  // namespace tandem::TANDEM_GPU
