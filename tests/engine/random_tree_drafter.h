// A drafter of random trees that only tests link: any shape a tree can have, with or without right guesses in it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "draft/drafter.h"

namespace tandem::test {

// Deterministic children that differ from their siblings. Shape and tokens are a function of the seed and the number of
// committed tokens alone, so that equal runs draft equal trees.
class RandomTreeDrafter final : public Drafter {
 public:
  // Tokens are drawn from `alphabet`, which is not empty. Where a path follows `truth` (a whole sequence, prompt
  // included), half of the children are its next token, so that paths of every length are accepted.
  RandomTreeDrafter(std::uint64_t seed, std::vector<TokenId> alphabet, std::vector<TokenId> truth = {})
      : seed_(seed), alphabet_(std::move(alphabet)), truth_(std::move(truth)) {}

  void set_truth(std::vector<TokenId> truth) { truth_ = std::move(truth); }

  const TokenTree& propose(Context& context, LengthPolicy& policy) override {
    const int base = context.size();
    std::mt19937_64 random(seed_ * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(base));
    tree_.clear(context.tokens().back());
    true_nodes_ = follows_truth(context.tokens()) ? 1 : 0;
    const int nodes = 1 + static_cast<int>(random() % kMaxTreeNodes);
    const int width = 1 + static_cast<int>(random() % kMaxTreeNodes);  // 1 is a chain, 64 any parent
    for (int attempt = 0; attempt < 4 * kMaxTreeNodes && tree_.size() < nodes; ++attempt) {
      const int parent = tree_.size() - 1 - static_cast<int>(random() % std::min(width, tree_.size()));
      const std::size_t place = static_cast<std::size_t>(base + tree_.depth(parent));
      const bool on_truth = (true_nodes_ >> parent & 1) != 0 && place < truth_.size();
      const TokenId token = on_truth && random() % 2 == 0 ? truth_[place] : alphabet_[random() % alphabet_.size()];
      if (tree_.child(parent, token) >= 0) continue;
      if (!policy.allow_row({tree_.depth(parent) + 1, tree_.size(), 1, 1, DraftSource::other})) continue;
      const int node = tree_.add(parent, token, ChildKind::deterministic, DraftSource::other);
      if (on_truth && token == truth_[place]) true_nodes_ |= std::uint64_t{1} << node;
    }
    return tree_;
  }
  void observe(const Observation&, const Context&) override {}
  void reset() override {}
  std::string_view name() const override { return "random-tree"; }

 private:
  bool follows_truth(std::span<const TokenId> tokens) const {
    return tokens.size() <= truth_.size() && std::equal(tokens.begin(), tokens.end(), truth_.begin());
  }

  std::uint64_t seed_;
  std::vector<TokenId> alphabet_, truth_;
  std::uint64_t true_nodes_ = 0;  // bit per node whose path follows the truth
  TokenTree tree_;
};

}  // namespace tandem::test
