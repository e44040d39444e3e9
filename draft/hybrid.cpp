#include "draft/hybrid.h"

namespace tandem {

void HybridDrafter::grow(TokenTree& tree, Context& context, LengthPolicy& policy) {
  ngram_->read(context);
  const int begun = tree.first_leaf();
  const std::optional<DraftQuestion> repeat = ngram_->first(tree, begun);
  if (repeat && policy.prefers(*repeat, model_->first(tree, context))) ngram_->extend(tree, begun, policy);
  model_->grow(tree, context, policy);
  ngram_->extend(tree, tree.first_leaf(), policy);
}

void HybridDrafter::reset() {
  model_->reset();
  ngram_->reset();
}

}  // namespace tandem
