// From a format known at run time to a kernel made for it.
#pragma once
#include "kernels/cuda/platform.h"
#include "kernels/quant/format.h"

namespace tandem::TANDEM_GPU {

constexpr bool holds_floats(Format format) {
  return format == Format::f32 || format == Format::f16 || format == Format::bf16;
}

// Calls work.template operator()<F>() for a format of codes. Throws Error(device) for a float format.
template <typename Work>
void with_code_format(Format format, const Work& work) {
  switch (format) {
    case Format::q4_0:
      return work.template operator()<Format::q4_0>();
    case Format::q4_1:
      return work.template operator()<Format::q4_1>();
    case Format::q5_0:
      return work.template operator()<Format::q5_0>();
    case Format::q5_1:
      return work.template operator()<Format::q5_1>();
    case Format::q8_0:
      return work.template operator()<Format::q8_0>();
    case Format::q4_k:
      return work.template operator()<Format::q4_k>();
    case Format::q5_k:
      return work.template operator()<Format::q5_k>();
    case Format::q6_k:
      return work.template operator()<Format::q6_k>();
    default:
      fail_cuda(cudaErrorInvalidValue, "a kernel for codes with a float format");
  }
}

// The same for a format of floats.
template <typename Work>
void with_float_format(Format format, const Work& work) {
  switch (format) {
    case Format::f32:
      return work.template operator()<Format::f32>();
    case Format::f16:
      return work.template operator()<Format::f16>();
    case Format::bf16:
      return work.template operator()<Format::bf16>();
    default:
      fail_cuda(cudaErrorInvalidValue, "a kernel for floats with a format of codes");
  }
}

}  // namespace tandem::TANDEM_GPU
