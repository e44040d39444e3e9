// The CUDA toolkit this build was made with; the backend itself is not part of this version.
#pragma once

namespace tandem {

// Toolkit version as major * 1000 + minor * 10.
int cuda_toolkit_version();

}  // namespace tandem
