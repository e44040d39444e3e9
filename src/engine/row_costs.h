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

// Times passes of each row count on top of `context` cached tokens, interleaved over `repeats` rounds. Up to
// kMaxTreeNodes rows logits of every row are wanted, as in verification; beyond, of the last one only, as in prefill.
// Throws Error(input) when they do not fit.
std::vector<RowCost> measure_row_costs(Transformer& model, const std::vector<int>& rows, int context, int repeats,
                                       const std::function<void(int, int)>& progress = {});

}  // namespace tandem
