// The cost curve T(rows): seconds of one forward pass for given row counts.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/backend.h"
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

// Share of the multiply peak that a kernel can reach beside scales, sums and broadcasts of its inputs.
inline constexpr double kReachablePeak = 0.72;

// What no pass beats: what the host's memory and multiplier were measured to give, or the peak of a device's memory.
struct Yardstick {
  std::optional<Device> device;
  std::optional<double> reading, multiplies;  // of the host, bytes and multiply-adds a second

  // Bytes a second; nothing for a device that does not tell.
  std::optional<double> memory() const;
  // To read these weights.
  std::optional<double> memory_seconds(std::size_t bytes) const;
  // The larger of that and, where they were measured, the multiplies.
  std::optional<double> seconds(std::size_t bytes, double macs) const;
};

// Median seconds of a pass over one row on top of few and of `cached` tokens.
struct DepthCost {
  KvType kv_cache;
  double few_seconds, cached_seconds;
  // What attention over the cache takes of the deeper pass.
  double attention_share() const { return 1 - few_seconds / cached_seconds; }
};

// Times single rows at both depths for a cache of each of `types`, interleaved over `repeats` rounds. Throws
// Error(input) when `cached` tokens and one more do not fit.
std::vector<DepthCost> measure_depth_costs(Transformer& model, int cached, const std::vector<KvType>& types,
                                           int repeats);

}  // namespace tandem
