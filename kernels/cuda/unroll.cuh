// TANDEM_UNROLL before a loop over a register array: nvcc unrolls it, so that every index is a constant.
#pragma once

#ifdef __CUDACC__
#define TANDEM_UNROLL _Pragma("unroll")
#else
#define TANDEM_UNROLL
#endif
