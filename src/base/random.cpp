#include "src/base/random.h"

#include <cmath>

namespace tandem {

double Noise::uniform(std::uint32_t position, int node, DrawPurpose purpose) const {
  return uniform_from_word(block(static_cast<std::uint32_t>(node), position, purpose)[0]);
}

double Noise::gumbel(std::uint32_t position, TokenId token) const {
  return -std::log(-std::log(uniform_from_word(token_words(position, token)[token & 3])));
}

}  // namespace tandem
