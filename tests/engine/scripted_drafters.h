// Drafters that follow a script, for tests of the engine alone.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "draft/drafter.h"

namespace tandem::test {

// A chain of deterministic children given by a rule, as long as the policy lets it.
class ChainDrafter final : public Drafter {
 public:
  // The token at this place of the sequence (prompt included), `depth` below the pending token.
  using Rule = std::function<TokenId(std::size_t place, int depth)>;
  // `before` runs at the start of each proposal.
  explicit ChainDrafter(Rule rule, std::function<void()> before = {})
      : rule_(std::move(rule)), before_(std::move(before)) {}

  const TokenTree& propose(Context& context, LengthPolicy& policy) override {
    if (before_) before_();
    tree_.clear(context.tokens().back());
    for (int node = 0; !tree_.full();) {
      const int depth = tree_.depth(node) + 1;
      if (!policy.allow_row({depth, tree_.size(), 1, 1, DraftSource::other})) break;
      const TokenId token = rule_(static_cast<std::size_t>(context.size() + depth - 1), depth);
      node = tree_.add(node, token, ChildKind::deterministic, DraftSource::other);
    }
    return tree_;
  }
  void observe(const Observation&, const Context&) override {}
  void reset() override {}
  std::string_view name() const override { return "script"; }

 private:
  Rule rule_;
  std::function<void()> before_;
  TokenTree tree_;
};

inline TokenId at_or_zero(const std::vector<TokenId>& truth, std::size_t place) {
  return place < truth.size() ? truth[place] : 0;
}

// `truth`: the whole sequence, prompt included.
inline std::unique_ptr<Drafter> oracle(std::vector<TokenId> truth, std::function<void()> before = {}) {
  return std::make_unique<ChainDrafter>(
      [truth = std::move(truth)](std::size_t place, int) { return at_or_zero(truth, place); }, std::move(before));
}

// Right until the token `right` + 1 below the pending one, which is wrong; 0 is never right.
inline std::unique_ptr<Drafter> wrong_after(int right, std::vector<TokenId> truth) {
  return std::make_unique<ChainDrafter>([right, truth = std::move(truth)](std::size_t place, int depth) {
    const TokenId token = at_or_zero(truth, place);
    return depth <= right ? token : (token + 1) % 100;
  });
}

// Siblings that repeat each other: a wrong token twice, and but for every third place the right one twice; the tree
// goes on below the first of the last token.
class DuplicateSiblings final : public Drafter {
 public:
  explicit DuplicateSiblings(std::vector<TokenId> truth) : truth_(std::move(truth)) {}

  const TokenTree& propose(Context& context, LengthPolicy& policy) override {
    tree_.clear(context.tokens().back());
    for (int node = 0; node >= 0;) {
      const std::size_t place = static_cast<std::size_t>(context.size() + tree_.depth(node));
      const TokenId right = at_or_zero(truth_, place), wrong = (right + 1) % 100;
      const TokenId last = place % 3 == 0 ? wrong : right;
      for (const TokenId token : {wrong, last, wrong, last}) {
        if (tree_.full() || !policy.allow_row({tree_.depth(node) + 1, tree_.size(), 1, 1, DraftSource::other})) break;
        tree_.add(node, token, ChildKind::deterministic, DraftSource::other);
      }
      node = tree_.child(node, last);
    }
    return tree_;
  }
  void observe(const Observation&, const Context&) override {}
  void reset() override {}
  std::string_view name() const override { return "duplicates"; }

 private:
  std::vector<TokenId> truth_;
  TokenTree tree_;
};

}  // namespace tandem::test
