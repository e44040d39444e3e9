// What the wired rules share: the context on its way through a proposal, and the draw at its end.
#pragma once
#include <cstdint>

#include "src/base/token_tree.h"
#include "src/sample/context.h"
#include "src/sample/sampler.h"

namespace tandem {

// Moves the context between the nodes of a tree, because a row's history is the path to its node. However it ends, the
// context holds the committed tokens again, and after commit() those of the verdict too.
class Walk {
 public:
  Walk(const TokenTree& tree, Context& context) : tree_(tree), context_(context), committed_(context.size()) {}
  ~Walk() { back_to(committed_); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // Puts the path to `node` behind the committed tokens.
  void go_to(int node) {
    back_to(committed_);
    for (int i = 1; i <= node; ++i) {
      if (tree_.ancestors(node) >> i & 1) context_.push(tree_.token(i));
    }
  }

  // Commits the accepted path and the token after it.
  void commit(const Verdict& verdict) {
    back_to(committed_);
    for (const int node : verdict.path().subspan(1)) context_.push(tree_.token(node));
    context_.push(verdict.next);
    committed_ = context_.size();
  }

 private:
  void back_to(int size) { context_.pop(context_.size() - size); }

  const TokenTree& tree_;
  Context& context_;
  int committed_;
};

// The correction or bonus token of a step that starts at `start` and ends at node `last`. A step of one node is plain
// decoding, whose noise is the position's own; every other draw is keyed by the step's start, because re-using a
// position's noise after a rejection would bias.
inline TokenId draw_next(const Sampler& sampler, const Distribution& p, const TokenTree& tree, std::uint32_t start,
                         int last) {
  return tree.size() == 1 ? sampler.draw_with_noise(p, start) : sampler.draw(p, start, last, DrawPurpose::correction);
}

}  // namespace tandem
