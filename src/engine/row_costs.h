// The cost curve T(rows): seconds of one forward pass for given row counts.
#pragma once
#include <functional>
#include <vector>

#include "src/engine/model_files.h"

namespace tandem {

struct RowCost {
  int rows;
  double seconds_median, seconds_min;
};

// Rows of a pass whose logits are wanted: all up to kMaxTreeNodes, as in verification; beyond, the last one, as in
// prefill.
inline int logits_rows(int rows) { return rows <= kMaxTreeNodes ? rows : 1; }

// Times passes of each row count on top of `context` cached tokens, interleaved over `repeats` rounds.
// Throws Error(input) when they do not fit.
std::vector<RowCost> measure_row_costs(Transformer& model, const std::vector<int>& rows, int context, int repeats,
                                       const std::function<void(int, int)>& progress = {});

}  // namespace tandem
