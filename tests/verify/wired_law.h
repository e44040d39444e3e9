// The law of several steps of a wired rule on toys, for chi-square tests.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tests/sample/chi_square.h"
#include "tests/verify/wired_toy.h"

namespace tandem::testing {

// p of one row written out: softmax of logits / temperature over the `top_k` best.
inline std::vector<double> softmax(std::span<const float> logits, const SamplingOptions& options) {
  std::vector<double> law(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < law.size(); ++i) {
    std::size_t better = 0;
    for (std::size_t j = 0; j < law.size(); ++j) better += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
    if (options.top_k == 0 || better < static_cast<std::size_t>(options.top_k)) {
      total += law[i] = std::exp(logits[i] / options.temperature);
    }
  }
  for (double& probability : law) probability /= total;
  return law;
}

// Probability of every sequence of `length` tokens under plain sampling, by its number in base vocabulary.
inline std::vector<double> joint_law(const ToyLogits& target, const SamplingOptions& options, int length) {
  std::vector<double> law{1};
  std::vector<std::vector<TokenId>> contexts{{0, 1}};
  for (int i = 0; i < length; ++i) {
    std::vector<double> longer;
    std::vector<std::vector<TokenId>> next;
    for (std::size_t at = 0; at < law.size(); ++at) {
      const std::vector<double> row = softmax(target.row(contexts[at]), options);
      for (TokenId token = 0; token < target.vocab(); ++token) {
        longer.push_back(law[at] * row[token]);
        next.push_back(contexts[at]);
        next.back().push_back(token);
      }
    }
    law = std::move(longer);
    contexts = std::move(next);
  }
  return law;
}

inline std::size_t number_of(std::span<const TokenId> tokens, int length, int vocab) {
  std::size_t number = 0;
  for (int i = 0; i < length; ++i) number = number * vocab + tokens[i];
  return number;
}

struct Wired {
  ToyLogits target, draft;
  int length;  // tokens whose joint law is compared
  SamplingOptions options;
  std::vector<Shape> shapes;  // of successive steps, over and over
};

// `step` takes (toy, shape) and commits tokens.
template <typename Step>
ChiSquare chi_square_of(const Wired& wired, DraftDraw draw, int sequences, Step&& step) {
  const std::vector<double> law = joint_law(wired.target, wired.options, wired.length);
  std::vector<double> counts(law.size());
  WiredToy toy(wired.target, wired.draft, wired.options, Noise{20240229, 0}, draw);
  for (int sequence = 0; sequence < sequences; ++sequence) {
    toy.restart(static_cast<std::uint32_t>(sequence));
    for (std::size_t i = 0; static_cast<int>(toy.generated().size()) < wired.length; ++i) {
      step(toy, wired.shapes[i % wired.shapes.size()]);
    }
    ++counts[number_of(toy.generated(), wired.length, wired.target.vocab())];
  }
  return chi_square(counts, law);
}

inline ChiSquare chi_square_of(const Wired& wired, Verifier& rule, int sequences) {
  return chi_square_of(wired, rule.draft_draw(), sequences,
                       [&](WiredToy& toy, const Shape& shape) { toy.step(rule, shape); });
}

}  // namespace tandem::testing
