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

std::vector<std::uint32_t> TokenMask::bits(int count) const {
  std::vector<std::uint32_t> words((static_cast<std::size_t>(count) + 31) / 32);
  for (const TokenRun& run : runs_) {
    for (TokenId id = run.begin; id < std::min(run.end, count); ++id) {
      words[static_cast<std::size_t>(id) / 32] |= std::uint32_t{1} << id % 32;
    }
  }
  return words;
}

bool TokenMask::allows(TokenId id) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), id,
                                      [](TokenId token, const TokenRun& run) { return token < run.begin; });
  return after != runs_.begin() && id < std::prev(after)->end;
}

}  // namespace tandem
