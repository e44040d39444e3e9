#include "draft/constrained.h"

namespace tandem {

const TokenTree& ConstrainedDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  double path_confidence = 1;
  int state = constraint_->state(context);
  for (int node = 0; !tree_.full() && !constraint_->complete(state);) {
    TokenId token = constraint_->only(state);
    const double confidence = token >= 0 ? 1 : kSpelled;
    if (token < 0) token = constraint_->likely(state);
    if (token < 0) break;
    if (!policy.allow_row(
            {tree_.depth(node) + 1, tree_.size(), path_confidence, confidence, DraftSource::grammar, node})) {
      break;
    }
    node = tree_.add(node, token, ChildKind::deterministic, DraftSource::grammar, static_cast<float>(confidence));
    path_confidence *= confidence;
    state = constraint_->after(state, token);
  }
  inner_->grow(tree_, context, policy);
  return tree_;
}

}  // namespace tandem
