#include "src/base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tandem {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a binary16 pattern by its definition (IEEE 754-2019, 3.4), in double.
double defined_value(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  const double sign = half & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31)
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

TEST(Half, EveryPatternHasItsDefinedValue) {
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float value = half_to_float(half);
    const double expected = defined_value(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(value) & 0x007fffff, (i & 0x3ffu) << 13) << i;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << i;
    }
    ASSERT_EQ(std::signbit(value), (i & 0x8000) != 0) << i;
  }
}

TEST(Half, EveryPatternComesBackFromItsValue) {
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const bool nan = (i & 0x7fff) > 0x7c00;
    ASSERT_EQ(float_to_half(half_to_float(half)), nan ? (i | 0x200) : i);
  }
}

TEST(Half, FloatsBetweenNeighboursRoundToTheNearestTiesToEven) {
  for (std::uint32_t i = 0; i < 0x7c00; ++i) {
    const auto below = static_cast<std::uint16_t>(i);
    const auto above = static_cast<std::uint16_t>(i + 1);
    // Beyond the largest finite value the next step, 65536, stands for infinity.
    const float upper = above == 0x7c00 ? 65536.0f : half_to_float(above);
    const float middle = (half_to_float(below) + upper) / 2;
    ASSERT_EQ(float_to_half(middle), i % 2 == 0 ? below : above) << i;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), below) << i;
    ASSERT_EQ(float_to_half(std::nextafter(middle, kInfinity)), above) << i;
    ASSERT_EQ(float_to_half(-middle), 0x8000 | (i % 2 == 0 ? below : above)) << i;
  }
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(float_to_half(-kInfinity), 0xfc00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bfloat16, EveryPatternIsTheUpperHalfOfAFloatAndComesBack) {
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto pattern = static_cast<std::uint16_t>(i);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(bf16_to_float(pattern)), i << 16);
    const bool nan = (i & 0x7fff) > 0x7f80;
    ASSERT_EQ(float_to_bf16(bf16_to_float(pattern)), nan ? (i | 0x40) : i);
  }
}

TEST(Bfloat16, FloatsBetweenNeighboursRoundToTheNearestTiesToEven) {
  for (std::uint32_t i = 0; i < 0x7f80; ++i) {
    const float middle = std::bit_cast<float>((i << 16) | 0x8000u);
    ASSERT_EQ(float_to_bf16(middle), i + i % 2) << i;
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>((i << 16) | 0x7fffu)), i) << i;
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>((i << 16) | 0x8001u)), i + 1) << i;
  }
}

}  // namespace
}  // namespace tandem
