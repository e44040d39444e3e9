// Q4_0: 32 values scale * (q - 8) with 4-bit q.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "kernels/quant/bits.h"
#include "kernels/quant/format.h"

namespace tandem {

// Bytes only, so a block may lie at any address.
struct BlockQ4_0 {
  static constexpr FormatInfo kInfo{Format::q4_0, "Q4_0", 32, 18};
  std::uint8_t scale[2];    // f16
  std::uint8_t quants[16];  // byte i: value i below, value i + 16 above
};
static_assert(sizeof(BlockQ4_0) == BlockQ4_0::kInfo.block_bytes);

inline void decode(const BlockQ4_0& block, float* __restrict out) {
  const float scale = load_half(block.scale);
  std::uint8_t quants[32];
  unpack_nibbles(block.quants, quants);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(quants[i] - 8);
}

// The value that is largest in size would be scale * -8 exactly; the others go to the nearest quant, ties to the even
// one, and the scale is then the one that fits these quants best (least squares). GGUF's reference keeps the first
// scale and rounds ties up: values that come from a format of five bits are halfway between two quants as often as not,
// so all of them move one way. 32 values; what is no number becomes some quant.
// Integers where it can be: compilers do not turn comparisons of floats into vectors.
inline void encode(const float* __restrict values, BlockQ4_0& block) {
  constexpr int kLanes = 8;  // of sums that need not wait for each other
  std::int32_t sizes[kLanes] = {};
  for (int i = 0; i < 32; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      sizes[lane] = std::max(sizes[lane], std::bit_cast<std::int32_t>(values[i + lane]) & 0x7fffffff);
    }
  }
  constexpr std::int32_t kLargestFinite = 0x7f7fffff;
  const float extreme = std::bit_cast<float>(std::min(*std::max_element(sizes, sizes + kLanes), kLargestFinite));
  bool below = false;
  for (int i = 0; i < 32; ++i) below |= values[i] == -extreme;
  const float scale = (below ? extreme : -extreme) / 8;
  const float inverse = scale != 0 ? 1 / scale : 0;

  constexpr float kWhole = 12582912;  // 1.5 * 2^23: a sum with it keeps no fraction, and its last bits are an integer
  std::int32_t quants[32];
  for (int i = 0; i < 32; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i] * inverse + kWhole) - std::bit_cast<std::uint32_t>(kWhole);
    quants[i] = std::max(std::min(static_cast<std::int32_t>(bits), 7), -8);
  }
  float dot[kLanes] = {}, square[kLanes] = {};
  for (int i = 0; i < 32; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto quant = static_cast<float>(quants[i + lane]);
      dot[lane] += values[i + lane] * quant;
      square[lane] += quant * quant;
    }
  }
  const float fitted = std::accumulate(dot, dot + kLanes, 0.0f) / std::accumulate(square, square + kLanes, 0.0f);
  store_half(block.scale, std::isfinite(fitted) ? fitted : scale);
  for (int i = 0; i < 16; ++i) {
    block.quants[i] = static_cast<std::uint8_t>((quants[i] + 8) | (quants[i + 16] + 8) << 4);
  }
}

}  // namespace tandem
