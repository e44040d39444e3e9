// What a lane reads of tiles of F32, F16 and BF16: outputs 2 g and 2 g + 1 of one input, one word or two.
#pragma once
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/tile_fragment.cuh"

namespace tandem::TANDEM_GPU {

struct FloatPair {
  float of[2];
};

template <Format F>
inline constexpr int kFloatBytes = F == Format::f32 ? 4 : 2;

template <Format F>
__device__ inline FloatPair read_floats(const std::uint8_t* tile, int input, int g) {
  const std::uint8_t* at = tile + (static_cast<std::size_t>(input) * kTileOutputs + 2 * g) * kFloatBytes<F>;
  if constexpr (F == Format::f32) {
    const auto both = load_once<float2>(at);
    return {{both.x, both.y}};
  } else {
    const auto both = load_once<std::uint32_t>(at);
    if constexpr (F == Format::f16) {
      return {{float_of_half(static_cast<std::uint16_t>(both)), float_of_half(static_cast<std::uint16_t>(both >> 16))}};
    } else {
      return {{std::bit_cast<float>(both << 16), std::bit_cast<float>(both & 0xffff0000u)}};
    }
  }
}

}  // namespace tandem::TANDEM_GPU
