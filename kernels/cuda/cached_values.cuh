// Elements of cached keys and values as floats, whatever the cache's type.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/convert.cuh"
#include "src/base/tensor.h"

namespace tandem::TANDEM_GPU {

// Element `i` of a slot.
template <KvType T>
__device__ inline float read_element(const std::byte* slot, int i) {
  if constexpr (T == KvType::f32) return reinterpret_cast<const float*>(slot)[i];
  if constexpr (T == KvType::f16) return float_of_half(reinterpret_cast<const std::uint16_t*>(slot)[i]);
  const std::byte* block = slot + i / kKvBlock * kKvBlockBytes;
  const float scale = float_of_half(*reinterpret_cast<const std::uint16_t*>(block));
  return scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i % kKvBlock]));
}

// Elements i .. i + 3, i a multiple of 4.
template <KvType T>
__device__ inline float4 read_four(const std::byte* slot, int i) {
  if constexpr (T == KvType::f32) return *reinterpret_cast<const float4*>(slot + 4 * i);
  if constexpr (T == KvType::f16) {
    const auto words = *reinterpret_cast<const uint2*>(slot + 2 * i);
    return {
        float_of_half(static_cast<std::uint16_t>(words.x)), float_of_half(static_cast<std::uint16_t>(words.x >> 16)),
        float_of_half(static_cast<std::uint16_t>(words.y)), float_of_half(static_cast<std::uint16_t>(words.y >> 16))};
  }
  const std::byte* block = slot + i / kKvBlock * kKvBlockBytes;
  const float scale = float_of_half(*reinterpret_cast<const std::uint16_t*>(block));
  const auto* codes = reinterpret_cast<const std::uint16_t*>(block + 2 + i % kKvBlock);  // blocks lie at even addresses
  const auto code = [&](int k) { return static_cast<float>(static_cast<std::int8_t>(codes[k / 2] >> 8 * (k % 2))); };
  return {scale * code(0), scale * code(1), scale * code(2), scale * code(3)};
}

}  // namespace tandem::TANDEM_GPU
