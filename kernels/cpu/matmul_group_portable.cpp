#include "kernels/cpu/simd_portable.h"
// The lanes come first: the kernels below are written in their terms.
#include "kernels/cpu/matmul_group-inl.h"

namespace tandem::cpu {

void matmul_group_portable(const TileCall& call) { matmul_group(call); }

}  // namespace tandem::cpu
