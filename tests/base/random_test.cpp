#include "src/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace tandem {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known-answer vectors that its authors publish for Philox4x32-10.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, ReachesNeitherZeroNorOne) {
  static_assert(uniform_from_word(0) == 0x1p-33);
  static_assert(uniform_from_word(0xffffffff) == 1 - 0x1p-33);
  static_assert(uniform_from_word(0) > 0 && uniform_from_word(0xffffffff) < 1);
  for (const std::uint32_t word : {0u, 1u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
    const double gumbel = -std::log(-std::log(uniform_from_word(word)));
    EXPECT_TRUE(std::isfinite(gumbel)) << word;
    EXPECT_GT(gumbel, -3.2) << word;
    EXPECT_LT(gumbel, 22.9) << word;
  }
}

TEST(Noise, IsTheStatedFunctionOfItsKey) {
  const Noise noise{0x123456789abcdef0, 7};
  const std::array<std::uint32_t, 2> key{0x9abcdef0, 0x12345678};
  EXPECT_EQ(noise.uniform(41, 5, DrawPurpose::accept), uniform_from_word(philox({5, 41, 7, 2}, key)[0]));
  for (const TokenId token : {0, 1, 2, 3, 4, 151935}) {
    const std::uint32_t word = philox({static_cast<std::uint32_t>(token) >> 2, 41, 7, 0}, key)[token & 3];
    EXPECT_EQ(noise.token_words(41, token)[token & 3], word);
    EXPECT_EQ(noise.gumbel(41, token), -std::log(-std::log(uniform_from_word(word))));
  }
}

TEST(Noise, DiffersInEveryPartOfTheKey) {
  std::vector<double> drawn;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (const std::uint32_t stream : {0u, 1u}) {
      const Noise noise{seed, stream};
      for (const std::uint32_t position : {0u, 1u, 0xffffffffu}) {
        for (int node = 0; node < kMaxTreeNodes; ++node) {
          for (const DrawPurpose purpose : {DrawPurpose::draft, DrawPurpose::accept, DrawPurpose::correction}) {
            drawn.push_back(noise.uniform(position, node, purpose));
          }
          drawn.push_back(uniform_from_word(noise.token_words(position, node)[node & 3]));
        }
      }
    }
  }
  // n draws of 2^32 values repeat n^2 / 2^33 times by chance: 4608 draws, 0.0025 expected.
  EXPECT_EQ(std::set<double>(drawn.begin(), drawn.end()).size(), drawn.size());
}

// Standard deviation of the mean: sqrt(1/12 / n) for the uniform, sqrt(pi^2/6 / n) for the Gumbel law.
TEST(Noise, HasTheRightMeans) {
  constexpr int kDraws = 100000;
  const Noise noise{42, 0};
  double uniform = 0, gumbel = 0;
  for (int i = 0; i < kDraws; ++i) {
    uniform += noise.uniform(i / 64, i % 64, DrawPurpose::accept);
    gumbel += noise.gumbel(i / 100, i % 100);
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(gumbel / kDraws, 0.57721566, 5 * std::sqrt(1.6449341 / kDraws));
}

}  // namespace
}  // namespace tandem
