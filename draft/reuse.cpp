#include "draft/reuse.h"

namespace tandem {

void ReuseDrafter::grow(TokenTree& tree, Context& context, LengthPolicy& policy) {
  ngram_->read(context);
  recycle_->read(context);
  const int end = tree.first_leaf();
  if (ngram_->extend(tree, end, policy) == end) recycle_->extend(tree, policy);
}

void ReuseDrafter::reset() {
  ngram_->reset();
  recycle_->reset();
}

}  // namespace tandem
