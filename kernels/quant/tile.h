// Where a repacked weight keeps what: tiles of 16 outputs, inputs in groups of 256, codes and their scales in reading
// order. One layout for both backends: a vector instruction of the CPU multiplies four inputs of 16 outputs, and a lane
// of a GPU's warp finds its part of a 16 x 32 matrix fragment in two or four words.
//
// A vector of codes is 64 bytes: byte 4 r + k is input 4 v + k of output r. Codes are unsigned. Sub-blocks of 32 inputs
// come in pairs:
//   nibbles of a sub-block: 256 B, byte of vector v (0..3): inputs 4 v + k below, 16 + 4 v + k above
//   fifth bits: 64 B, eight masks of 64 bits, one a vector
//   two top bits: 128 B, byte 64 (v / 4) + 4 r + k: bits 2 (v mod 4) ..
//   pair of Q4_0 Q4_1 Q5_0 Q5_1 Q8_0: 2 x codes | 2 x 16 scales f16 | (Q4_1, Q5_1) 2 x 16 minima f16
//   pair of Q4_K Q5_K: 2 x codes | 16 (even, odd) scales u8 | 16 (even, odd) minima u8
//   pair of Q6_K: 2 x (nibbles | two top bits) | 2 x 16 (even, odd 16) scales s8
//   a group of Q4_K and Q5_K ends with 16 d, 16 dmin f16, of Q6_K with 16 d f16 and padding
// Float formats: input by input, 16 outputs of each in the weight's own type.
// Sub-blocks beyond the inputs and outputs beyond the rows are zero codes with zero scales.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/quant/format.h"

namespace tandem {

inline constexpr int kTileOutputs = 16;
inline constexpr int kGroup = 256;    // inputs a group
inline constexpr int kSubBlock = 32;  // inputs a sub-block

enum class Family : std::uint8_t {
  group,  // GroupActs: K-quants
  block,  // BlockActs: scales per 32
  real    // float activations: F32, F16, BF16
};

template <Format F>
struct Layout {
  static constexpr bool kFiveBits = F == Format::q5_0 || F == Format::q5_1 || F == Format::q5_k;
  static constexpr bool kMinima = F == Format::q4_1 || F == Format::q5_1;
  static constexpr bool kGroupFormat = F == Format::q4_k || F == Format::q5_k || F == Format::q6_k;
  static constexpr int kCodes = F == Format::q8_0 ? 512 : F == Format::q6_k ? 384 : kFiveBits ? 320 : 256;
  static constexpr int kPair = 2 * kCodes + (kMinima ? 128 : 64);
  static constexpr int kGroupEnd = 4 * kPair;  // K-quants: where d lies
  static constexpr int kGroupBytes = 4 * kPair + (kGroupFormat ? 64 : 0);
};
static_assert(Layout<Format::q4_k>::kGroupBytes == 2368 && Layout<Format::q6_k>::kGroupBytes == 3392);
static_assert(Layout<Format::q5_k>::kGroupBytes == 2880 && Layout<Format::q5_0>::kPair == 704);

// Bytes of a tile of `cols` inputs.
std::size_t tile_bytes(Format format, int cols);
Family family_of(Format format);

}  // namespace tandem
