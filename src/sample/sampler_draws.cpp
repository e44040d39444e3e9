// How tokens are drawn from a distribution.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "src/sample/sampler.h"

namespace tandem {

TokenId Sampler::draw_with_noise(const Distribution& p, std::uint32_t position) const {
  TokenId best = p.tokens.front();
  if (p.size() == 1) return best;
  // argmax of log p - ln(-ln u) is argmin of (-ln u) / p. As -ln u > 1 - u >= 2^-33, most tokens are ruled out before
  // the logarithm, and the unlikely ones even before their noise once the likeliest has set the mark.
  const auto arrival_of = [&](std::size_t i, double u) { return -std::log(u) / p.probabilities[i]; };
  const auto likeliest = static_cast<std::size_t>(std::max_element(p.probabilities.begin(), p.probabilities.end()) -
                                                  p.probabilities.begin());
  const TokenId mark = p.tokens[likeliest];
  std::array<std::uint32_t, 4> words = noise_.token_words(position, mark);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Just above, so that the likeliest token wins in its own turn, behind an equal one of a lower id.
  double least = std::nextafter(arrival_of(likeliest, uniform_from_word(words[mark & 3])), kInfinity);
  TokenId block = mark >> 2;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double reach = least * p.probabilities[i];
    if (reach <= 0x1p-33) continue;
    const TokenId token = p.tokens[i];
    if (token >> 2 != block) {
      block = token >> 2;
      words = noise_.token_words(position, token);
    }
    const double u = uniform_from_word(words[token & 3]);
    if (1 - u >= reach) continue;
    const double arrival = arrival_of(i, u);
    if (arrival < least) least = arrival, best = token;
  }
  return best;
}

TokenId Sampler::draw(const Distribution& p, std::uint32_t start_position, int node, DrawPurpose purpose) const {
  if (p.size() == 1) return p.tokens.front();
  const double u = uniform(start_position, node, purpose);
  double cumulative = 0;
  for (std::size_t i = 0; i + 1 < p.size(); ++i) {
    cumulative += p.probabilities[i];
    if (u < cumulative) return p.tokens[i];
  }
  return p.tokens.back();
}

}  // namespace tandem
