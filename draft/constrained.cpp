#include "draft/constrained.h"

namespace tandem {

const TokenTree& ConstrainedDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  admission_.begin(context);
  const auto add_certain_tokens = [&] {
    for (int node = tree_.first_leaf(); node >= 0;) node = admission_.add_certain(tree_, node, policy);
  };
  add_certain_tokens();
  inner_->grow(tree_, context, policy);
  add_certain_tokens();
  return tree_;
}

}  // namespace tandem
