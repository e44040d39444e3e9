// Teacher-forced scoring of a text.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/engine/model_files.h"

namespace tandem {

struct Scores {
  std::vector<double> logprobs;      // natural; of id i given the ids before it; NaN for the first, which has none
  std::vector<TokenId> argmax;       // the best next id after id i (ties: lowest id)
  std::vector<float> last_logits;    // after the last id, [vocab]
  std::optional<double> perplexity;  // exp of the mean negative log-probability; nullopt for fewer than 2 ids
};

// Scores `ids` in one sequence; `kv_cache` unset: on the backend's preferred cache type. `progress(done, total)` is
// called between passes. Nothing is masked. Throws Error(input) when there are no ids or more than the model's context.
Scores score(const ModelFile& model, Backend& backend, std::span<const TokenId> ids,
             const std::function<void(int, int)>& progress = {}, std::optional<KvType> kv_cache = {});

}  // namespace tandem
