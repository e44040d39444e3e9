#include "src/base/random.h"

#include <cmath>

namespace tandem {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
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

namespace {

// The purpose is the last counter word: no two purposes ever share a block.
std::array<std::uint32_t, 4> block(const Noise& noise, std::uint32_t index, std::uint32_t position,
                                   DrawPurpose purpose) {
  return philox({index, position, noise.stream, static_cast<std::uint32_t>(purpose)},
                {static_cast<std::uint32_t>(noise.seed), static_cast<std::uint32_t>(noise.seed >> 32)});
}

}  // namespace

double Noise::uniform(std::uint32_t position, int node, DrawPurpose purpose) const {
  return uniform_from_word(block(*this, static_cast<std::uint32_t>(node), position, purpose)[0]);
}

std::array<std::uint32_t, 4> Noise::token_words(std::uint32_t position, TokenId token) const {
  return block(*this, static_cast<std::uint32_t>(token) >> 2, position, DrawPurpose::token_noise);
}

double Noise::gumbel(std::uint32_t position, TokenId token) const {
  return -std::log(-std::log(uniform_from_word(token_words(position, token)[token & 3])));
}

}  // namespace tandem
