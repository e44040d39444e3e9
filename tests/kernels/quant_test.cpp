#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "kernels/quant/format.h"
#include "src/base/error.h"
#include "src/base/half.h"

namespace tandem {
namespace {

constexpr Format kFormats[] = {Format::f32,  Format::f16,  Format::bf16, Format::q4_0, Format::q4_1, Format::q5_0,
                               Format::q5_1, Format::q8_0, Format::q4_k, Format::q5_k, Format::q6_k};

using Bytes = std::vector<std::byte>;

int byte(std::span<const std::byte> block, std::size_t i) { return std::to_integer<int>(block[i]); }
int signed_byte(std::span<const std::byte> block, std::size_t i) { return static_cast<std::int8_t>(block[i]); }
float half(std::span<const std::byte> block, std::size_t i) {
  return half_to_float(static_cast<std::uint16_t>(byte(block, i) | byte(block, i + 1) << 8));
}

// Value i of one block by the format's definition, one value and one bit at a time: what the block-wise decoders must
// equal.
float defined_small(Format format, std::span<const std::byte> block, int i) {
  const auto nibble = [&](std::size_t start) { return (byte(block, start + i % 16) >> (i < 16 ? 0 : 4)) & 15; };
  const auto fifth = [&](std::size_t start) { return ((byte(block, start + i / 8) >> (i % 8)) & 1) << 4; };
  const float scale = half(block, 0);
  switch (format) {
    case Format::q4_0:
      return scale * static_cast<float>(nibble(2) - 8);
    case Format::q4_1:
      return scale * static_cast<float>(nibble(4)) + half(block, 2);
    case Format::q5_0:
      return scale * static_cast<float>((nibble(6) | fifth(2)) - 16);
    case Format::q5_1:
      return scale * static_cast<float>(nibble(8) | fifth(4)) + half(block, 2);
    default:
      return scale * static_cast<float>(signed_byte(block, 2 + i));
  }
}

float defined_k(Format format, std::span<const std::byte> block, int i) {
  if (format == Format::q6_k) {
    const int half_block = i / 128;
    const int quarter = i / 32 % 4;
    const int low = (byte(block, 64 * half_block + 32 * (quarter % 2) + i % 32) >> (quarter < 2 ? 0 : 4)) & 15;
    const int top = (byte(block, 128 + 32 * half_block + i % 32) >> (2 * quarter)) & 3;
    return half(block, 208) * static_cast<float>(signed_byte(block, 192 + i / 16)) *
           static_cast<float>((low | top << 4) - 32);
  }
  const int group = i / 32;
  const std::size_t packed = 4;
  const std::size_t quants = format == Format::q4_k ? 16 : 48;
  int scale = byte(block, packed + group % 4) & 63;
  int minimum = byte(block, packed + 4 + group % 4) & 63;
  if (group >= 4) {
    scale = (byte(block, packed + 4 + group) & 15) | (byte(block, packed + group - 4) >> 6) << 4;
    minimum = byte(block, packed + 4 + group) >> 4 | (byte(block, packed + group) >> 6) << 4;
  }
  int quant = (byte(block, quants + 32 * (group / 2) + i % 32) >> (group % 2 ? 4 : 0)) & 15;
  if (format == Format::q5_k) quant |= ((byte(block, 16 + i % 32) >> group) & 1) << 4;
  return half(block, 0) * static_cast<float>(scale) * static_cast<float>(quant) -
         half(block, 2) * static_cast<float>(minimum);
}

Bytes from_base64(const std::string& text) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  Bytes out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(alphabet.find(c));
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<std::byte>(bits >> held));
    }
  }
  return out;
}

// The golden decimals have nine significant digits, enough to name one float each, so equality is to the last bit.
TEST(Quant, DecodesTheGoldenBlocksExactly) {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/golden/quants.jsonl");
  ASSERT_TRUE(file);
  std::string line;
  int rows = 0;
  while (std::getline(file, line)) {
    const auto row = nlohmann::json::parse(line);
    const auto info = format_info(row["type_id"].get<std::uint32_t>());
    if (!info) continue;
    SCOPED_TRACE(row["type"].get<std::string>());
    EXPECT_EQ(info->name, row["type"].get<std::string>());
    EXPECT_EQ(info->block_values, row["block_size"].get<int>());
    EXPECT_EQ(info->block_bytes, row["block_bytes"].get<int>());
    const Bytes blocks = from_base64(row["bytes_base64"]);
    const auto expected = row["values"].get<std::vector<double>>();
    std::vector<float> values(expected.size());
    decode_blocks(info->format, blocks, values);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(expected[i])) << i;
    ++rows;
  }
  EXPECT_EQ(rows, 10) << "every quantised type of the table, F16 and BF16";
}

TEST(Quant, DecodesRandomBlocksAsDefinedBitForBit) {
  std::mt19937 random(7);
  for (const Format format : kFormats) {
    const FormatInfo& info = format_info(format);
    if (info.block_values == 1) continue;
    SCOPED_TRACE(info.name);
    constexpr std::size_t kBlocks = 500;
    const auto block_bytes = static_cast<std::size_t>(info.block_bytes);
    // One byte in front: blocks may lie at odd addresses.
    Bytes bytes(1 + kBlocks * block_bytes);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    const auto blocks = std::span<const std::byte>(bytes).subspan(1);
    std::vector<float> values(kBlocks * static_cast<std::size_t>(info.block_values));
    decode_blocks(format, blocks, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto block = blocks.subspan(i / info.block_values * block_bytes, block_bytes);
      const int place = static_cast<int>(i) % info.block_values;
      const float expected =
          info.block_values == 32 ? defined_small(format, block, place) : defined_k(format, block, place);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[i])) << i;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(expected)) << i;
      }
    }
  }
}

TEST(Quant, PlainFormatsDecodeEveryValueInPlace) {
  const std::vector<float> floats = {0.0f, -1.5f, 3.4e38f, 1e-45f};
  std::vector<float> values(4);
  decode_blocks(Format::f32, std::as_bytes(std::span(floats)), values);
  EXPECT_EQ(values, floats);

  std::vector<std::uint16_t> patterns(0x7c00);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  values.resize(patterns.size());
  decode_blocks(Format::f16, std::as_bytes(std::span(patterns)), values);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], half_to_float(patterns[i]));
  decode_blocks(Format::bf16, std::as_bytes(std::span(patterns)), values);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], bf16_to_float(patterns[i]));
}

TEST(Quant, KnowsItsTableAndNothingElse) {
  for (const Format format : kFormats) {
    const auto info = format_info(static_cast<std::uint32_t>(format));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->format, format);
    EXPECT_EQ(format_info(format).name, info->name);
  }
  for (const std::uint32_t id : {4u, 5u, 9u, 10u, 11u, 20u, 42u, 0xffffffffu}) EXPECT_FALSE(format_info(id)) << id;
  EXPECT_THROW(format_info(static_cast<Format>(42)), Error);
}

// Quant i of block `block`, 0..15.
int q4_0_quant(std::span<const std::byte> blocks, std::size_t block, std::size_t i) {
  const int pair = byte(blocks, 18 * block + 2 + i % 16);
  return i < 16 ? pair & 15 : pair >> 4;
}

// The rule in double: quants by the scale extreme / -8, ties to even, and the scale that fits them.
double q4_0_scale(std::span<const float> values, std::span<int> quants) {
  float extreme = 0;
  for (const float value : values) extreme = std::abs(value) > std::abs(extreme) ? value : extreme;
  double dot = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double quant = std::clamp(std::nearbyint(static_cast<double>(values[i]) / (extreme / -8)), -8.0, 7.0);
    quants[i] = static_cast<int>(quant) + 8;
    dot += values[i] * quant;
    square += quant * quant;
  }
  return dot / square;
}

TEST(Quant, Q4_0EncodesWorkedValues) {
  std::vector<float> values(64);
  const std::vector<std::pair<float, int>> first{{-8, 0},    {-7.625f, 0}, {-7.5f, 0}, {-7.25f, 1}, {-6.5f, 2},
                                                 {-0.5f, 8}, {0, 8},       {0.5f, 8},  {1.5f, 10},  {7.875f, 15}};
  for (std::size_t i = 0; i < first.size(); ++i) values[2 * i] = first[i].first;
  values[32] = -2;  // the second block: both ends have the quants -8 and 8, of which only the first exists
  values[33] = 2;
  Bytes blocks(36);
  encode_blocks(Format::q4_0, values, blocks);
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(q4_0_quant(blocks, 0, 2 * i), first[i].second) << first[i].first;
  EXPECT_EQ(q4_0_quant(blocks, 1, 0), 0);
  EXPECT_EQ(q4_0_quant(blocks, 1, 1), 15);
  EXPECT_NEAR(half(blocks, 18), (2 * 8 + 2 * 7) / (64.0 + 49.0), 2e-4);
}

TEST(Quant, Q4_0EncodesByItsRule) {
  std::mt19937_64 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> values(32 * 300);
  for (float& value : values) value = normal(random);
  Bytes blocks(encoded_bytes(Format::q4_0, values.size()));
  encode_blocks(Format::q4_0, values, blocks);
  for (std::size_t block = 0; block < 300; ++block) {
    std::vector<int> quants(32);
    const double scale = q4_0_scale(std::span(values).subspan(32 * block, 32), quants);
    EXPECT_NEAR(half(blocks, 18 * block), scale, std::abs(scale) / 1024);
    for (std::size_t i = 0; i < 32; ++i) ASSERT_EQ(q4_0_quant(blocks, block, i), quants[i]) << block << ' ' << i;
  }
}

// Half of what five bits hold lies between two quants of four: rounding all of that one way would shift every value of
// a matrix by a quarter of a quant on average.
TEST(Quant, Q4_0MovesValuesOfFiveBitsNeitherUpNorDown) {
  std::mt19937_64 random(9);
  std::vector<float> values(32 * 2000), back(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 32 == 0 ? -16.0f : static_cast<float>(random() % 32) - 16;
  }
  Bytes blocks(encoded_bytes(Format::q4_0, values.size()));
  encode_blocks(Format::q4_0, values, blocks);
  decode_blocks(Format::q4_0, blocks, back);
  double shift = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = back[i] - values[i];
    shift += error / static_cast<double>(values.size());
    square += error * error;
  }
  // The top value, 15, has only a quant below it: off by -1 where the even one would be off by 1.
  const double deviation = std::sqrt(square) / static_cast<double>(values.size());
  EXPECT_LT(std::abs(shift), 2.0 / 32 + 4 * deviation);
}

// scale = largest size / 127, quant = value / scale to the nearest, halves away from 0.
TEST(Quant, Q8_0EncodesWorkedValues) {
  std::vector<float> values(32);
  const std::vector<std::pair<float, int>> worked{{-254, -127}, {254, 127}, {1, 1},  {-1, -1},
                                                  {0.75f, 0},   {3, 2},     {-5, -3}};
  for (std::size_t i = 0; i < worked.size(); ++i) values[i] = worked[i].first;
  Bytes blocks(34);
  encode_blocks(Format::q8_0, values, blocks);
  EXPECT_EQ(half(blocks, 0), 2.0f);
  for (std::size_t i = 0; i < worked.size(); ++i) {
    EXPECT_EQ(signed_byte(blocks, 2 + i), worked[i].second) << worked[i].first;
  }
}

// A quant is off by half a step at most, and the scale, rounded to half after the quants were chosen, by 2^-11 of
// itself.
TEST(Quant, Q8_0EncodedValuesAreWithinHalfAStepOfTheOriginals) {
  std::mt19937_64 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> values(32 * 200), back(values.size());
  for (float& value : values) value = normal(random);
  Bytes blocks(encoded_bytes(Format::q8_0, values.size()));
  encode_blocks(Format::q8_0, values, blocks);
  decode_blocks(Format::q8_0, blocks, back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float scale = half(blocks, i / 32 * std::size_t{34});
    ASSERT_LE(std::abs(values[i] - back[i]), std::abs(scale) * (0.5f + 2 * 127.0f / 2048)) << i;
  }
}

TEST(Quant, EncodesZerosAndWhatIsNoNumberToSomeBlock) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const Format format : {Format::q4_0, Format::q8_0}) {
    std::vector<float> values(32), back(32);
    Bytes blocks(encoded_bytes(format, 32));
    encode_blocks(format, values, blocks);
    decode_blocks(format, blocks, back);
    EXPECT_EQ(back, values);
    for (const float odd : {nan, infinity, -infinity, 1e-45f, 3e38f}) {
      values.assign(32, odd);
      EXPECT_NO_THROW(encode_blocks(format, values, blocks)) << odd;
    }
  }
}

TEST(Quant, EncodesToNoOtherFormatAndNoOtherSize) {
  const std::vector<float> values(64);
  Bytes blocks(36);
  EXPECT_NO_THROW(encode_blocks(Format::q4_0, values, blocks));
  EXPECT_THROW(encode_blocks(Format::q4_0, values, std::span(blocks).first(35)), Error);
  EXPECT_THROW(encode_blocks(Format::q4_0, std::span(values).first(33), blocks), Error);
  blocks.resize(40);
  EXPECT_THROW(encode_blocks(Format::q4_1, values, blocks), Error);
}

TEST(Quant, RefusesAWrongNumberOfBytesOrValues) {
  const Bytes blocks(36);
  std::vector<float> values(64);
  EXPECT_NO_THROW(decode_blocks(Format::q4_0, blocks, values));
  EXPECT_THROW(decode_blocks(Format::q4_0, std::span(blocks).first(35), values), Error);
  EXPECT_THROW(decode_blocks(Format::q4_0, blocks, std::span(values).first(33)), Error);
  EXPECT_THROW(decode_blocks(Format::q4_0, blocks, std::span(values).first(32)), Error);
}

}  // namespace
}  // namespace tandem
