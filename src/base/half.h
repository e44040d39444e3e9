// Exact conversions between float and the two 16-bit formats, in plain integer code that vectorises: no F16C needed.
#pragma once
#include <bit>
#include <cstdint>

namespace tandem {

// The value of an IEEE 754 binary16 pattern, subnormals and infinities included; a NaN keeps sign and payload.
constexpr float half_to_float(std::uint16_t half) {
  constexpr std::uint32_t kRebias = 112u << 23;  // float's exponent bias 127 less half's 15
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  const std::uint32_t exponent = magnitude & 0x0f800000u;
  // A subnormal is m * 2^-24. With the exponent of 2^-14 put in, the number is 2^-14 + m * 2^-24, so one exact
  // subtraction normalises it, and no step sees a subnormal float that a flush-to-zero mode would lose.
  constexpr std::uint32_t kSmallestNormal = 113u << 23;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + kSmallestNormal) -
                                                               std::bit_cast<float>(kSmallestNormal));
  const std::uint32_t special = magnitude + 2 * kRebias;  // exponent 31 becomes 255
  const std::uint32_t normal = magnitude + kRebias;
  const std::uint32_t value = exponent == 0 ? subnormal : (exponent == 0x0f800000u ? special : normal);
  return std::bit_cast<float>(sign | value);
}

// The nearest binary16 pattern, ties to even; beyond 65504 by half a step or more: infinity. A NaN becomes a quiet NaN
// with the top payload bits kept. Expects the default rounding mode.
constexpr std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // 0.5f has the step 2^-24 of half's subnormals, so the addition itself rounds, and to even.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
  const std::uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  const std::uint32_t special = magnitude > 0x7f800000u ? nan : 0x7c00u;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x477ff000u ? special : finite));  // 65520 = 0x477ff000
}

// The value of a bfloat16 pattern: the upper half of a float.
constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The nearest bfloat16 pattern, ties to even; a NaN becomes a quiet NaN.
constexpr std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

}  // namespace tandem
