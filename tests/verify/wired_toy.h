// A toy target and a toy drafter around the wired rule: real Sampler, real noise, real keys.
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "src/base/logits.h"
#include "src/base/token_tree.h"
#include "src/sample/context.h"
#include "src/sample/sampler.h"
#include "tests/verify/enumeration.h"
#include "tests/verify/toy.h"
#include "verify/rejection.h"

namespace tandem::testing {

// Logits that depend on the last two tokens of the context.
class ToyLogits {
 public:
  ToyLogits(int vocab, std::uint64_t seed) : vocab_(vocab) {
    const std::size_t width = static_cast<std::size_t>(vocab);
    table_.resize(width * width * width);
    const Noise noise{seed, 0};
    for (std::size_t i = 0; i < table_.size(); ++i) {
      table_[i] = static_cast<float>(0.7 * noise.gumbel(0, static_cast<TokenId>(i)));
    }
  }
  // The same row for every context: the logits of a law.
  static ToyLogits constant(const std::vector<double>& law) {
    ToyLogits toy(static_cast<int>(law.size()), 0);
    for (std::size_t i = 0; i < toy.table_.size(); ++i)
      toy.table_[i] = static_cast<float>(std::log(law[i % law.size()]));
    return toy;
  }
  int vocab() const { return vocab_; }
  std::span<const float> row(std::span<const TokenId> context) const {
    const std::size_t last = context.back(), before = context[context.size() - 2];
    return std::span(table_).subspan((before * vocab_ + last) * vocab_, vocab_);
  }

 private:
  int vocab_;
  std::vector<float> table_;
};

// One sequence that is decoded step by step.
class WiredToy {
 public:
  static constexpr std::uint32_t kPositions = 64;

  WiredToy(const ToyLogits& target, const ToyLogits& draft, SamplingOptions options, Noise noise,
           DraftDraw draw = DraftDraw::independent)
      : target_(target),
        draft_(draft),
        sampler_(options, noise, {}),
        draft_sampler_({1, 0, 1, 0}, noise, {}),
        draw_(draw) {
    restart();
  }

  // Begins sequence number `sequence`: the same first tokens, at positions of its own (room for 64), hence with noise
  // of its own.
  void restart(std::uint32_t sequence = 0) {
    context_.clear();
    context_.set_dropped(kPositions * sequence);
    for (const TokenId token : {0, 1}) context_.push(token);
  }

  // Draws a proposal of the given shape below the pending token; deterministic children: the draft's lowest ids.
  const TokenTree& propose(const Shape& shape) {
    const std::uint32_t start = context_.position();
    tree_.clear(context_.tokens().back());
    for (int node = 0; node < tree_.size(); ++node) {
      if (tree_.depth(node) >= static_cast<int>(shape.size())) break;
      const Level level = shape[static_cast<std::size_t>(tree_.depth(node))];
      Distribution& q = tree_.set_proposal(node);
      draft_sampler_.distribution(draft_.row(history(node)), context_, q);
      for (TokenId token = 0; token < level.deterministic; ++token) {
        tree_.add(node, token, ChildKind::deterministic, DraftSource::other);
      }
      for (int i = 0; i < level.sampled && tree_.left_to_draw(node).size() > 0; ++i) {
        tree_.draw_child(node, DraftSource::model, [&](const Distribution& left) {
          // Shared noise: siblings are the next best of the same keys.
          return draw_ == DraftDraw::shared_noise ? draft_sampler_.draw_with_noise(left, start + tree_.depth(node))
                                                  : draft_sampler_.draw(left, start, tree_.size(), DrawPurpose::draft);
        });
      }
    }
    return tree_;
  }

  // The target's logits of every node of `tree`, as one pass of a model would give them.
  Logits forward(const TokenTree& tree) {
    rows_.clear();
    for (int node = 0; node < tree.size(); ++node) {
      const auto row = target_.row(history(node, tree));
      rows_.insert(rows_.end(), row.begin(), row.end());
    }
    return {rows_, target_.vocab()};
  }

  Verdict step(Verifier& verifier, const Shape& shape) {
    const TokenTree& tree = propose(shape);
    return verifier.verify(tree, forward(tree), sampler_, context_);
  }

  Context& context() { return context_; }
  Sampler& sampler() { return sampler_; }
  std::span<const TokenId> generated() const { return context_.tokens().subspan(2); }

 private:
  std::span<const TokenId> history(int node) { return history(node, tree_); }
  // The context with the path to a node behind it.
  std::span<const TokenId> history(int node, const TokenTree& tree) {
    history_.assign(context_.tokens().begin(), context_.tokens().end());
    for (int i = 1; i <= node; ++i) {
      if (tree.ancestors(node) >> i & 1) history_.push_back(tree.token(i));
    }
    return history_;
  }

  const ToyLogits& target_;
  const ToyLogits& draft_;
  Sampler sampler_, draft_sampler_;
  DraftDraw draw_;
  Context context_;
  TokenTree tree_;
  std::vector<float> rows_;
  std::vector<TokenId> history_;
};

}  // namespace tandem::testing
