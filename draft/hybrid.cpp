#include "draft/hybrid.h"

namespace tandem {

const TokenTree& HybridDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  ngram_->read(context.tokens());
  const std::optional<DraftQuestion> repeat = ngram_->first(tree_, 0);
  if (repeat && policy.prefers(*repeat, model_->first(context))) ngram_->extend(tree_, 0, policy);
  model_->grow(tree_, context, policy);
  int end = 0;  // of the path of first children
  for (int child = 0; child >= 0; child = tree_.next_child(end, end)) end = child;
  ngram_->extend(tree_, end, policy);
  return tree_;
}

void HybridDrafter::reset() {
  model_->reset();
  ngram_->reset();
}

}  // namespace tandem
