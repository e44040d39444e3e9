// Conversions of the 16-bit formats: the device's instructions, and on the host the same values by src/base/half.h.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "src/base/half.h"

namespace tandem::TANDEM_GPU {

__device__ inline float float_of_half(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(bits));
#else
  return half_to_float(bits);
#endif
}

// The pattern of kernels/reference, NaN payloads included, which the device's instruction would not keep.
__device__ inline std::uint16_t half_of_float(float value) { return float_to_half(value); }

}  // namespace tandem::TANDEM_GPU
