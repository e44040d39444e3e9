// What a lane of a warp reads of a weight's tiles (kernels/quant/tile.h): codes as it holds them in a matrix fragment,
// and the scales of its two outputs.
//
// Lane l = 4 g + t. Row g of a fragment is output 2 g of the tile and row g + 8 is output 2 g + 1, so that both lie in
// one 8-byte word and a warp reads the 256 bytes of a sub-block's nibbles at once.
#pragma once
#include <cstdint>

#include "kernels/cuda/convert.cuh"
#include "kernels/quant/tile.h"

namespace tandem::TANDEM_GPU {

// Bytes that no other block will read: they pass the caches without pushing out activations.
template <typename T>
__device__ inline T load_once(const void* from) {
#ifdef __CUDA_ARCH__
  return __ldcs(static_cast<const T*>(from));
#else
  return *static_cast<const T*>(from);
#endif
}

// How a format's values come from its codes: (code - kOffset) * scale, less a minimum in some.
template <Format F>
struct CodeRule {
  static constexpr bool kMinima = Layout<F>::kMinima || F == Format::q4_k || F == Format::q5_k;
  static constexpr bool kHalves = F == Format::q6_k;  // a scale for each 16 inputs
  static constexpr int kOffset = F == Format::q4_0   ? 8
                                 : F == Format::q5_0 ? 16
                                 : F == Format::q6_k ? 32
                                 : F == Format::q8_0 ? 128
                                                     : 0;
};

// What a lane reads of a 16 x 32 sub-block's codes. Reading and unpacking are apart so that a loop can read ahead.
template <Format F>
struct RawCodes {
  static constexpr int kWords = F == Format::q8_0 ? 2 : F == Format::q6_k ? 3 : 1;
  uint2 word[kWords];
  std::uint32_t fifth;  // byte t, and byte t + 4 above it

  __device__ void read(const std::uint8_t* codes, int g, int t) {
    word[0] = load_once<uint2>(codes + 64 * t + 8 * g);
    if constexpr (F == Format::q8_0) word[1] = load_once<uint2>(codes + 64 * (t + 4) + 8 * g);
    if constexpr (F == Format::q6_k) {
      word[1] = load_once<uint2>(codes + 256 + 8 * g);
      word[2] = load_once<uint2>(codes + 320 + 8 * g);
    }
    if constexpr (Layout<F>::kFiveBits) {
      fifth = load_once<std::uint8_t>(codes + 256 + 8 * t + g) |
              std::uint32_t{load_once<std::uint8_t>(codes + 256 + 8 * (t + 4) + g)} << 8;
    }
  }
};

// Unsigned codes: words of outputs (2 g, 2 g + 1), inputs 4 t.. and then 16 + 4 t...
struct Codes {
  std::uint32_t word[4];
};

// Bits 0..3 to bit 4 of bytes 0..3.
__device__ inline std::uint32_t spread_bits(std::uint32_t bits) {
  return ((bits & 15) * 0x00204081u & 0x01010101u) << 4;
}

template <Format F>
__device__ inline Codes unpack(const RawCodes<F>& raw, int t) {
  if constexpr (F == Format::q8_0) return {{raw.word[0].x, raw.word[0].y, raw.word[1].x, raw.word[1].y}};
  constexpr std::uint32_t kLow = 0x0f0f0f0fu;
  const uint2 words = raw.word[0];
  Codes out{{words.x & kLow, words.y & kLow, words.x >> 4 & kLow, words.y >> 4 & kLow}};
  if constexpr (F == Format::q6_k) {
    constexpr std::uint32_t kTop = 0x03030303u;
    out.word[0] |= (raw.word[1].x >> 2 * t & kTop) << 4;
    out.word[1] |= (raw.word[1].y >> 2 * t & kTop) << 4;
    out.word[2] |= (raw.word[2].x >> 2 * t & kTop) << 4;
    out.word[3] |= (raw.word[2].y >> 2 * t & kTop) << 4;
  }
  if constexpr (Layout<F>::kFiveBits) {
    out.word[0] |= spread_bits(raw.fifth);
    out.word[1] |= spread_bits(raw.fifth >> 4);
    out.word[2] |= spread_bits(raw.fifth >> 8);
    out.word[3] |= spread_bits(raw.fifth >> 12);
  }
  return out;
}

// Of outputs 2 g and 2 g + 1. [1] is that of the second 16 inputs where there is one.
struct Scales {
  float scale[2][2];
  float minimum[2];  // subtracted
};

struct HalfPair {
  float low, high;
};

__device__ inline HalfPair read_halves(const std::uint8_t* from) {
  const auto both = *reinterpret_cast<const std::uint32_t*>(from);
  return {float_of_half(static_cast<std::uint16_t>(both)), float_of_half(static_cast<std::uint16_t>(both >> 16))};
}

// Of sub-block `j` (0 or 1) of the pair at `side` = behind the pair's codes; `group_end`: of its group (K formats).
template <Format F>
__device__ inline Scales read_scales(const std::uint8_t* side, const std::uint8_t* group_end, int j, int g) {
  Scales out{};
  if constexpr (F == Format::q6_k) {
    const HalfPair d = read_halves(group_end + 4 * g);
    const auto packed = *reinterpret_cast<const std::uint32_t*>(side + 32 * j + 4 * g);
    for (int half = 0; half < 2; ++half) {
      out.scale[half][0] = d.low * static_cast<float>(static_cast<std::int8_t>(packed >> 8 * half));
      out.scale[half][1] = d.high * static_cast<float>(static_cast<std::int8_t>(packed >> (16 + 8 * half)));
    }
  } else if constexpr (Layout<F>::kGroupFormat) {
    const HalfPair d = read_halves(group_end + 4 * g), dmin = read_halves(group_end + 32 + 4 * g);
    const auto scales = *reinterpret_cast<const std::uint32_t*>(side + 4 * g) >> 8 * j,
               minima = *reinterpret_cast<const std::uint32_t*>(side + 32 + 4 * g) >> 8 * j;
    out.scale[0][0] = d.low * static_cast<float>(scales & 255);
    out.scale[0][1] = d.high * static_cast<float>(scales >> 16 & 255);
    out.minimum[0] = dmin.low * static_cast<float>(minima & 255);
    out.minimum[1] = dmin.high * static_cast<float>(minima >> 16 & 255);
  } else {
    const HalfPair scale = read_halves(side + 32 * j + 4 * g);
    out.scale[0][0] = scale.low;
    out.scale[0][1] = scale.high;
    if constexpr (Layout<F>::kMinima) {
      const HalfPair minimum = read_halves(side + 64 + 32 * j + 4 * g);
      out.minimum[0] = -minimum.low;
      out.minimum[1] = -minimum.high;
    }
  }
  return out;
}

// A pair of sub-blocks, 64 inputs, of one tile.
template <Format F>
struct PairPlace {
  const std::uint8_t *codes, *side, *group_end;

  __device__ PairPlace(const std::uint8_t* tile, int pair) {
    const std::uint8_t* group = tile + static_cast<std::size_t>(pair / 4) * Layout<F>::kGroupBytes;
    codes = group + pair % 4 * Layout<F>::kPair;
    side = codes + 2 * Layout<F>::kCodes;
    group_end = group + Layout<F>::kGroupEnd;
  }
};

// The value of a code, with the roundings of kernels/quant: the bits of decode_blocks().
template <Format F>
__device__ inline float value_of(int code, float scale, float minimum) {
  const float product = scale * static_cast<float>(code - CodeRule<F>::kOffset);
  return CodeRule<F>::kMinima ? product - minimum : product;
}

}  // namespace tandem::TANDEM_GPU
