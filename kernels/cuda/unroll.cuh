// TANDEM_UNROLL before a loop over a register array: nvcc unrolls it, so that every index is a constant.
// TANDEM_UNROLL_BY(n) before a loop of unknown length: nvcc unrolls it n times and not as often as it likes, which
// costs registers.
#pragma once

#ifdef __CUDACC__
#define TANDEM_PRAGMA(text) _Pragma(#text)
#define TANDEM_UNROLL _Pragma("unroll")
#define TANDEM_UNROLL_BY(n) TANDEM_PRAGMA(unroll n)
#else
#define TANDEM_UNROLL
#define TANDEM_UNROLL_BY(n)
#endif
