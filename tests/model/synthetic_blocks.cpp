#include "tests/model/synthetic_blocks.h"

#include <algorithm>
#include <cstring>

#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "src/base/error.h"

namespace tandem::test {
namespace {

// Standard deviations of a decoded value whose codes are random, in units of the block's scale.
constexpr double kQ4_KDeviation = 257;   // group scale x nibble - 7.5 x group minimum, both of six bits
constexpr double kQ6_KDeviation = 1370;  // group scale of int8 x (six bits - 32)
constexpr double kQ5_0Deviation = 9.24;  // five bits - 16
constexpr double kQ8_0Deviation = 73.9;  // int8

void set_scales(BlockQ4_K& block, double deviation) {
  store_half(block.scale, static_cast<float>(deviation / kQ4_KDeviation));
  store_half(block.minimum, static_cast<float>(7.5 * deviation / kQ4_KDeviation));
}
void set_scales(BlockQ5_0& block, double deviation) {
  store_half(block.scale, static_cast<float>(deviation / kQ5_0Deviation));
}
void set_scales(BlockQ6_K& block, double deviation) {
  store_half(block.scale, static_cast<float>(deviation / kQ6_KDeviation));
}
void set_scales(BlockQ8_0& block, double deviation) {
  store_half(block.scale, static_cast<float>(deviation / kQ8_0Deviation));
}

// In the functions below positive(i) is the sign of value i of the block, which holds zeros before.

template <typename Positive>
void set_signs(BlockQ4_K& block, double magnitude, const Positive& positive) {
  // Every group's scale and minimum are 1, so that code 15 is 2 m - m and code 0 is -m.
  store_half(block.scale, static_cast<float>(2 * magnitude / 15));
  store_half(block.minimum, static_cast<float>(magnitude));
  std::fill_n(block.group_scales, 8, std::uint8_t{1});
  std::fill_n(block.group_scales + 8, 4, std::uint8_t{0x11});
  for (int i = 0; i < 256; ++i) {
    if (positive(i)) block.quants[32 * (i / 64) + i % 32] |= i % 64 < 32 ? 0x0f : 0xf0;
  }
}

template <typename Positive>
void set_signs(BlockQ5_0& block, double magnitude, const Positive& positive) {
  store_half(block.scale, static_cast<float>(magnitude / 15));  // codes 31 and 1
  for (int i = 0; i < 32; ++i) {
    const int code = positive(i) ? 31 : 1;
    block.quants[i % 16] |= static_cast<std::uint8_t>((code & 15) << (i < 16 ? 0 : 4));
    block.fifth_bits[i / 8] |= static_cast<std::uint8_t>(code >> 4 << i % 8);
  }
}

template <typename Positive>
void set_signs(BlockQ6_K& block, double magnitude, const Positive& positive) {
  store_half(block.scale, static_cast<float>(magnitude / 31));  // codes 63 and 1
  std::fill_n(block.group_scales, 16, std::int8_t{1});
  for (int i = 0; i < 256; ++i) {
    const int code = positive(i) ? 63 : 1, half = i / 128, quarter = i % 128 / 32;
    block.quants[64 * half + 32 * (quarter % 2) + i % 32] |= static_cast<std::uint8_t>((code & 15) << quarter / 2 * 4);
    block.top_bits[32 * half + i % 32] |= static_cast<std::uint8_t>(code >> 4 << 2 * quarter);
  }
}

template <typename Positive>
void set_signs(BlockQ8_0& block, double magnitude, const Positive& positive) {
  store_half(block.scale, static_cast<float>(magnitude / 127));
  for (int i = 0; i < 32; ++i) block.quants[i] = static_cast<std::int8_t>(positive(i) ? 127 : -127);
}

template <typename Block, typename Set>
void for_each_block(std::span<std::uint8_t> bytes, const Set& set) {
  if (bytes.size() % sizeof(Block) != 0) {
    fail(ErrorKind::usage, "synthetic blocks: expected whole blocks of {} bytes, got {} bytes", sizeof(Block),
         bytes.size());
  }
  for (std::size_t i = 0; i < bytes.size() / sizeof(Block); ++i) {
    Block block;
    std::memcpy(&block, bytes.data() + i * sizeof(Block), sizeof block);
    set(block, i);
    std::memcpy(bytes.data() + i * sizeof(Block), &block, sizeof block);
  }
}

template <typename Use>
void with_block(Format format, const Use& use) {
  switch (format) {
    case Format::q4_k:
      return use(BlockQ4_K{});
    case Format::q5_0:
      return use(BlockQ5_0{});
    case Format::q6_k:
      return use(BlockQ6_K{});
    case Format::q8_0:
      return use(BlockQ8_0{});
    default:
      fail(ErrorKind::usage, "synthetic blocks: expected q4_k, q5_0, q6_k or q8_0, got {}", format_info(format).name);
  }
}

}  // namespace

void fill_random_blocks(Format format, std::span<std::uint8_t> blocks, double deviation, std::mt19937_64& random) {
  for (std::size_t at = 0; at < blocks.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(blocks.data() + at, &word, std::min(sizeof word, blocks.size() - at));
  }
  with_block(format, [&]<typename Block>(Block) {
    for_each_block<Block>(blocks, [&](Block& block, std::size_t) { set_scales(block, deviation); });
  });
}

void fill_sign_blocks(Format format, std::span<std::uint8_t> blocks, double magnitude,
                      std::span<const std::uint64_t> signs) {
  std::ranges::fill(blocks, std::uint8_t{0});
  with_block(format, [&]<typename Block>(Block) {
    for_each_block<Block>(blocks, [&](Block& block, std::size_t index) {
      const std::size_t first = index * Block::kInfo.block_values;
      set_signs(block, magnitude, [&](int i) {
        const std::size_t value = first + static_cast<std::size_t>(i);
        return (signs[value / 64] >> value % 64 & 1) != 0;
      });
    });
  });
}

}  // namespace tandem::test
