// Random numbers as pure functions of their key: nothing to advance, nothing to roll back.
#pragma once
#include <array>
#include <cstdint>

#include "src/base/types.h"

namespace tandem {

// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

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
  std::array<std::uint32_t, 4> token_words(std::uint32_t position, TokenId token) const;
  // Gumbel(0, 1) noise of one token at one position: -ln(-ln u), u from the token's word; within [-3.1, 22.9].
  double gumbel(std::uint32_t position, TokenId token) const;
};

}  // namespace tandem
