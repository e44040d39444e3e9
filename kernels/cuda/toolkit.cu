// Keeps the CUDA toolchain building (sm_80, sm_90, sm_100 and PTX) on machines without a GPU.
#include <cuda_runtime.h>

#include "kernels/cuda/toolkit.h"

namespace tandem {

int cuda_toolkit_version() { return CUDART_VERSION; }

}  // namespace tandem
