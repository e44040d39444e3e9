// Little-endian loads and bit unpacking that the block decoders share.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "src/base/half.h"

namespace tandem {

static_assert(std::endian::native == std::endian::little, "blocks are read as they lie in a little-endian file");

template <typename T>
inline T load_le(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline float load_half(const std::uint8_t* bytes) { return half_to_float(load_le<std::uint16_t>(bytes)); }

inline void store_half(std::uint8_t* bytes, float value) {
  const std::uint16_t half = float_to_half(value);
  std::memcpy(bytes, &half, sizeof half);
}

// The nibbles of a block of 32 values: byte i holds value i below and value i + 16 above.
inline void unpack_nibbles(const std::uint8_t* nibbles, std::uint8_t* __restrict out) {
  constexpr std::uint64_t kLow = 0x0f0f0f0f0f0f0f0fu;
  for (int half = 0; half < 2; ++half) {
    const auto pairs = load_le<std::uint64_t>(nibbles + 8 * half);
    const std::uint64_t first = pairs & kLow;
    const std::uint64_t second = (pairs >> 4) & kLow;
    std::memcpy(out + 8 * half, &first, sizeof first);
    std::memcpy(out + 16 + 8 * half, &second, sizeof second);
  }
}

// Bit i by table: a shift that differs from lane to lane would keep loops over it scalar on SSE2.
inline constexpr auto kBit = [] {
  std::array<std::uint32_t, 32> bits{};
  for (int i = 0; i < 32; ++i) bits[i] = std::uint32_t{1} << i;
  return bits;
}();

// The fifth bit, in place, of value i of a Q5_0 or Q5_1 block.
inline int fifth_bit(std::uint32_t fifth_bits, int i) { return (fifth_bits & kBit[i]) != 0 ? 16 : 0; }

// Scales and minima of the eight 32-value groups of a Q4_K or Q5_K block, six bits each.
struct GroupScales {
  std::uint8_t scale[8];
  std::uint8_t minimum[8];
};

// Twelve bytes: scales 0..3 and minima 0..3 in the low six bits of bytes 0..3 and 4..7; of groups 4..7 the low four
// bits in the nibbles of bytes 8..11 (scale below, minimum above) and the top two in the spare bits of bytes 0..3
// and 4..7.
inline GroupScales unpack_group_scales(const std::uint8_t* packed) {
  const auto first = load_le<std::uint32_t>(packed);
  const auto second = load_le<std::uint32_t>(packed + 4);
  const auto third = load_le<std::uint32_t>(packed + 8);
  const std::uint32_t words[4] = {first & 0x3f3f3f3fu, (third & 0x0f0f0f0fu) | ((first >> 2) & 0x30303030u),
                                  second & 0x3f3f3f3fu, ((third >> 4) & 0x0f0f0f0fu) | ((second >> 2) & 0x30303030u)};
  return std::bit_cast<GroupScales>(words);
}

}  // namespace tandem
