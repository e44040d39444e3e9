#include "draft/none.h"

namespace tandem {

const TokenTree& NoneDrafter::propose(Context& context, LengthPolicy&) {
  tree_.clear(context.tokens().back());
  return tree_;
}

}  // namespace tandem
