// Which ids may be drawn at all.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "src/base/types.h"

namespace tandem {

struct TokenRun {
  TokenId begin, end;  // end excluded
};

// Ids that may never be drawn are marked unused, or lie beyond the vocabulary (padding rows of a model).
class TokenMask {
 public:
  TokenMask() = default;  // all ids are usable
  // `usable[id]`; ids past its end are masked.
  explicit TokenMask(const std::vector<bool>& usable);
  // `runs`: of the usable ids, ascending and not touching each other.
  explicit TokenMask(std::vector<TokenRun> runs) : runs_(std::move(runs)) {}
  // For an id >= 0. Binary search.
  bool allows(TokenId id) const;
  // Of ids 0 .. count - 1: bit i % 32 of word i / 32 is set where i is usable.
  std::vector<std::uint32_t> bits(int count) const;
  // The usable ids, ascending, as few runs as there can be.
  std::span<const TokenRun> runs() const { return runs_; }

 private:
  std::vector<TokenRun> runs_{{0, INT32_MAX}};
};

}  // namespace tandem
