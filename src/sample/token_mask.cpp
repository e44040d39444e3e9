#include "src/sample/token_mask.h"

#include <algorithm>

namespace tandem {

TokenMask::TokenMask(const std::vector<bool>& usable) {
  runs_.clear();
  const auto size = static_cast<TokenId>(usable.size());
  for (TokenId id = 0; id < size; ++id) {
    if (!usable[static_cast<std::size_t>(id)]) continue;
    if (!runs_.empty() && runs_.back().end == id) {
      ++runs_.back().end;
    } else {
      runs_.push_back({id, id + 1});
    }
  }
}

bool TokenMask::allows(TokenId id) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), id,
                                      [](TokenId token, const TokenRun& run) { return token < run.begin; });
  return after != runs_.begin() && id < std::prev(after)->end;
}

}  // namespace tandem
