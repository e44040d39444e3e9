// Small made-up models: a next-token distribution for every path of tokens, the same on every machine.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/base/distribution.h"
#include "src/base/random.h"
#include "src/base/token_tree.h"
#include "src/base/types.h"

namespace tandem::testing {

using Path = std::vector<TokenId>;

// Numbers a path of at most `depth` tokens below `vocab`: digits in base vocab + 1.
inline std::size_t path_code(std::span<const TokenId> path, int vocab) {
  std::size_t code = 0;
  for (const TokenId token : path)
    code = code * static_cast<std::size_t>(vocab + 1) + static_cast<std::size_t>(token) + 1;
  return code;
}

inline std::size_t path_codes(int vocab, int depth) {
  std::size_t codes = 1;
  for (int i = 0; i < depth; ++i) codes *= static_cast<std::size_t>(vocab + 1);
  return codes;
}

// A random point of the simplex, keyed by (seed, path): weights (-ln u)^spread, as Dirichlet(1) for spread 1 and nearer
// to its corners above. `zeros`: share of tokens left out (one always stays).
inline std::vector<double> random_law(std::uint64_t seed, std::span<const TokenId> path, int vocab, double spread,
                                      double zeros) {
  const Noise noise{seed, static_cast<std::uint32_t>(path_code(path, vocab))};
  std::vector<double> law(static_cast<std::size_t>(vocab));
  double total = 0;
  const int kept = static_cast<int>(noise.uniform(2, 0, DrawPurpose::draft) * vocab);
  for (int i = 0; i < vocab; ++i) {
    const bool out = i != kept && noise.uniform(1, i, DrawPurpose::draft) < zeros;
    law[i] = out ? 0 : std::pow(-std::log(noise.uniform(0, i, DrawPurpose::draft)), spread);
    total += law[i];
  }
  for (double& probability : law) probability /= total;
  return law;
}

inline Distribution support_of(const std::vector<double>& law) {
  Distribution out;
  for (std::size_t i = 0; i < law.size(); ++i) {
    if (law[i] > 0) out.add(static_cast<TokenId>(i), law[i]);
  }
  return out;
}

// Adds a child that a test has chosen, as if it had been drawn where it counts as sampled.
inline int add_child(TokenTree& tree, int parent, TokenId token, ChildKind kind) {
  if (kind == ChildKind::deterministic) return tree.add(parent, token, ChildKind::deterministic, DraftSource::other);
  return tree.draw_child(parent, DraftSource::other, [token](const Distribution&) { return token; });
}

// Target and draft of one test case, as laws over [vocab] for each path.
struct Pair {
  std::string name;
  std::function<std::vector<double>(std::span<const TokenId>)> target, draft;
};

// The relations between p and q that rejection must survive, for one vocabulary and seed.
inline std::vector<Pair> all_pairs(int vocab, std::uint64_t seed) {
  const auto law = [vocab](std::uint64_t s, double spread, double zeros) {
    return [=](std::span<const TokenId> path) { return random_law(s, path, vocab, spread, zeros); };
  };
  const auto one_hot = [vocab](std::uint64_t s) {
    return [=](std::span<const TokenId> path) {
      std::vector<double> out(static_cast<std::size_t>(vocab));
      const double u = Noise{s, static_cast<std::uint32_t>(path_code(path, vocab))}.uniform(3, 0, DrawPurpose::draft);
      out[static_cast<std::size_t>(u * vocab)] = 1;
      return out;
    };
  };
  const auto half = [vocab](int parity) {
    return [=](std::span<const TokenId> path) {
      std::vector<double> out = random_law(9, path, vocab, 1, 0);
      double total = 0;
      for (int i = 0; i < vocab; ++i) total += i % 2 == parity ? out[i] : (out[i] = 0);
      for (double& probability : out) probability /= total;
      return out;
    };
  };
  const auto blend = [=](std::span<const TokenId> path) {
    const std::vector<double> p = random_law(seed, path, vocab, 1, 0);
    std::vector<double> q = random_law(seed + 1, path, vocab, 1, 0);
    for (int i = 0; i < vocab; ++i) q[i] = 0.5 * p[i] + 0.5 * q[i];
    return q;
  };
  return {{"independent", law(seed, 1, 0), law(seed + 1, 1, 0)},  {"related", law(seed, 1, 0), blend},
          {"peaked", law(seed, 3, 0), law(seed + 1, 3, 0)},       {"zeros", law(seed, 1, 0.4), law(seed + 1, 1, 0.4)},
          {"equal", law(seed, 1, 0.2), law(seed, 1, 0.2)},        {"disjoint", half(0), half(1)},
          {"one-hot target", one_hot(seed), law(seed + 1, 1, 0)}, {"one-hot draft", law(seed, 1, 0), one_hot(seed)},
          {"both one-hot", one_hot(seed), one_hot(seed + 1)}};
}

}  // namespace tandem::testing
