// Keeps the CUDA toolchain building (sm_80, sm_90, sm_100 and PTX) on machines without a GPU.
#include "kernels/cuda/toolkit.h"

#include <cuda_runtime.h>

namespace tandem {

int cuda_toolkit_version() { return CUDART_VERSION; }

}  // namespace tandem
