// The CUDA backend and its emulation on the host: one source, compiled once for each (kernels/cuda/platform.h).
#pragma once
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace tandem::cuda {

// On the current device; `pool` outlives it. Throws Error(device) when there is none that this build has code for.
std::unique_ptr<Backend> make_cuda_backend(ThreadPool& pool);
// Whether make_cuda_backend() finds a device; if not, `why` says what is missing.
bool has_device(std::string& why);

}  // namespace tandem::cuda

namespace tandem::cuda_simt {

// The same kernels, a fiber for each thread of the device: for tests, thousands of times slower than a device.
std::unique_ptr<Backend> make_cuda_backend(ThreadPool& pool);
bool has_device(std::string& why);

}  // namespace tandem::cuda_simt
