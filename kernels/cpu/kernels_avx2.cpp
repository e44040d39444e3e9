#include "kernels/cpu/simd_avx2.h"
// The lanes come first: the kernels below are written in their terms.
#include "kernels/cpu/attention-inl.h"
#include "kernels/cpu/matmul_real-inl.h"
#include "kernels/cpu/pointwise-inl.h"
#include "kernels/cpu/yardstick-inl.h"

namespace tandem::cpu {

void matmul_group_avx2(const TileCall&);
void matmul_block_avx2(const TileCall&);

extern const KernelTable kKernelsAvx2;
const KernelTable kKernelsAvx2 = {quantise_group, quantise_blocks, matmul_group_avx2, matmul_block_avx2,
                                  matmul_real,    attention,       rms_norm,          silu_gate,
                                  gelu_gate,      add_rows,        scale_row,         soft_cap_row,
                                  to_half,        to_q8_0,         read_lines,        multiply_loop};

}  // namespace tandem::cpu
