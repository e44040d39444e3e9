#include "kernels/cpu/simd_avx512.h"
// The lanes come first: the kernels below are written in their terms.
#include "kernels/cpu/matmul_block-inl.h"

namespace tandem::cpu {

void matmul_block_avx512(const TileCall& call) { matmul_block(call); }

}  // namespace tandem::cpu
