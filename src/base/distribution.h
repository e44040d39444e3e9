// A probability distribution over tokens that holds its support only.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "src/base/types.h"

namespace tandem {

// Parallel arrays, token ids strictly ascending, every probability > 0, sum 1 up to rounding.
struct Distribution {
  std::vector<TokenId> tokens;
  std::vector<double> probabilities;

  std::size_t size() const { return tokens.size(); }
  void clear() {
    tokens.clear();
    probabilities.clear();
  }
  void add(TokenId token, double probability) {
    tokens.push_back(token);
    probabilities.push_back(probability);
  }
  // Probability of a token, 0 outside the support. Binary search.
  double operator[](TokenId token) const {
    const auto at = std::lower_bound(tokens.begin(), tokens.end(), token);
    return at != tokens.end() && *at == token ? probabilities[static_cast<std::size_t>(at - tokens.begin())] : 0.0;
  }
  // Scales to sum 1. Linear; does nothing when empty.
  void normalise() {
    double total = 0;
    for (const double probability : probabilities) total += probability;
    for (double& probability : probabilities) probability /= total;
  }
  // Conditions on "not this token": takes it out and scales the rest to sum 1. Does nothing outside the support,
  // empties when it was the only token. Linear. Whoever draws siblings without replacement and whoever checks them must
  // both use this, in the order of the siblings, so that they work on the same bits.
  void remove(TokenId token) {
    const auto at = std::lower_bound(tokens.begin(), tokens.end(), token);
    if (at == tokens.end() || *at != token) return;
    probabilities.erase(probabilities.begin() + (at - tokens.begin()));
    tokens.erase(at);
    normalise();
  }
};

}  // namespace tandem
