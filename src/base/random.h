// Random numbers as pure functions of their key: nothing to advance, nothing to roll back.
#pragma once
#include <array>
#include <cstdint>

#include "src/base/types.h"

namespace tandem {

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). constexpr: device code calls it
// too.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

// What a draw is for. Two draws that share a key share their value, so every use has its own purpose.
enum class DrawPurpose : std::uint32_t {
  token_noise = 0,  // Gumbel noise of plain decoding and of the `coupled` rule, keyed by position and token id
  draft,            // drawing a sampled child
  accept,           // accepting a child
  correction        // drawing the correction or bonus token
};

// (word + 0.5) / 2^32 in double, where it is exact: never 0, never 1 (in float the largest words would round to 1).
constexpr double uniform_from_word(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

// Noise of one sequence. `position` counts the tokens kept in the conversation before the one drawn (turns dropped from
// the context still count, cut tokens do not).
struct Noise {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;

  // Uniform in (0, 1) for a draw of a step that starts at `position`; `node` is the tree node that the draw is for.
  double uniform(std::uint32_t position, int node, DrawPurpose purpose) const;
  // The words of the four tokens that share `token >> 2`; word `token & 3` is the token's own. For callers that walk
  // many tokens: one block serves four.
  constexpr std::array<std::uint32_t, 4> token_words(std::uint32_t position, TokenId token) const {
    return block(static_cast<std::uint32_t>(token) >> 2, position, DrawPurpose::token_noise);
  }
  // Gumbel(0, 1) noise of one token at one position: -ln(-ln u), u from the token's word; within [-3.1, 22.9].
  double gumbel(std::uint32_t position, TokenId token) const;

  // The words of one key. The purpose is the last counter word: no two purposes ever share a block.
  constexpr std::array<std::uint32_t, 4> block(std::uint32_t index, std::uint32_t position, DrawPurpose purpose) const {
    return philox({index, position, stream, static_cast<std::uint32_t>(purpose)},
                  {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }
};

}  // namespace tandem
