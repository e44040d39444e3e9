#include "draft/reuse.h"

namespace tandem {

const TokenTree& ReuseDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  ngram_->read(context.tokens());
  recycle_->read(context.tokens());
  if (ngram_->extend(tree_, 0, policy) == 0) recycle_->extend(tree_, policy);
  return tree_;
}

void ReuseDrafter::reset() {
  ngram_->reset();
  recycle_->reset();
}

}  // namespace tandem
