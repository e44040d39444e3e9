#include "draft/hybrid.h"

namespace tandem {

const TokenTree& HybridDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  ngram_->read(context.tokens());
  const Pushed pushed(context);
  int node = 0;
  const std::optional<DraftQuestion> repeat = ngram_->first(tree_, 0);
  if (repeat && policy.prefers(*repeat, model_->first(tree_, 0, context.tokens()))) {
    node = ngram_->extend(tree_, 0, policy);
    for (int i = 1; i <= node; ++i) context.push(tree_.token(i));
  }
  node = model_->extend(tree_, node, context, policy);
  ngram_->extend(tree_, node, policy);
  return tree_;
}

void HybridDrafter::reset() {
  model_->reset();
  ngram_->reset();
}

}  // namespace tandem
