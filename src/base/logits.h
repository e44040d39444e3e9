// Logits of the rows asked for.
#pragma once
#include <cstddef>
#include <span>

#include "src/base/picking.h"
#include "src/base/types.h"

namespace tandem {

// Where rows lie that come to the host one by one, when they are asked for.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Row i, [vocab], in host memory. Throws Error(device) when it cannot be copied.
  virtual std::span<const float> row(int i) = 0;
};

// All of it valid until the next forward of the same model.
struct Logits {
  std::span<const float> data{};  // [rows, vocab]; empty where there is a source
  int vocab = 0;
  std::span<const TokenId> picks{};  // by row: what the pass's Picking draws; negative: only the row tells; empty: none
  std::span<const Candidate> candidates{};  // [rows, per_row]: of the pass's Picking, best first; empty: none
  int per_row = 0;
  RowSource* source = nullptr;

  std::span<const float> row(int i) const {
    return source != nullptr ? source->row(i) : data.subspan(static_cast<std::size_t>(i) * vocab, vocab);
  }
  std::span<const Candidate> best(int i) const {
    return candidates.empty() ? candidates : candidates.subspan(static_cast<std::size_t>(i) * per_row, per_row);
  }
  TokenId pick(int i) const { return picks.empty() ? -1 : picks[static_cast<std::size_t>(i)]; }
};

}  // namespace tandem
