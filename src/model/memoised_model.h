// A model that computes the logits after each prefix once and answers from memory from then on.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "src/model/prefix_tree.h"

namespace tandem {

// Stands in for `model` where the same short continuations come again and again. Its caches hold prefixes, so a
// sequence kept wrongly is answered for wrongly here too. Logits are bit for bit those of `model` as far as its rows do
// not depend on what else is in a pass.
class MemoisedModel final : public LanguageModel {
 public:
  // `model` outlives this. `kv_type`: of the one true cache, of `capacity` tokens, behind all answers. Logits of
  // prefixes are kept up to `most_bytes`; later ones are computed each time.
  MemoisedModel(LanguageModel& model, int capacity, KvType kv_type, std::size_t most_bytes);

  // `cache` is one of make_cache(). Throws as the model's own forward, which runs for prefixes that are new.
  Logits forward(const Batch& batch, KvCache& cache) override;
  std::span<const TokenId> head_tokens() const override { return model_.head_tokens(); }
  void follow(std::span<const TokenId>) override {}                          // each prefix follows itself
  void set_trace(ForwardTrace* trace) override { model_.set_trace(trace); }  // of the passes that run
  // Logits after these tokens, [vocab]; at least one. Valid until the next call of either.
  std::span<const float> logits_after(std::span<const TokenId> tokens);

  // Whatever the type, a slot is one prefix.
  KvCache make_cache(int capacity, KvType) const override { return prefixes_.make_cache(capacity); }
  const ModelSpec& spec() const override { return model_.spec(); }
  int max_rows() const override { return model_.max_rows(); }
  int max_positions() const override { return model_.max_positions(); }
  int computed() const { return computed_; }  // prefixes whose logits the model was run for

 private:
  std::span<const float> logits_of(Prefix prefix);
  void compute(Prefix prefix);

  LanguageModel& model_;
  KvCache cache_;                    // holds path_
  std::vector<TokenId> path_;        // tokens run last
  std::vector<TokenId> wanted_;      // scratch
  std::vector<Position> positions_;  // 0, 1, 2, ...
  PrefixTree prefixes_;
  std::vector<std::vector<float>> logits_;  // by prefix; empty: not kept
  std::size_t bytes_left_;
  int computed_ = 0;
  std::vector<float> newest_;  // logits of the prefix computed last
  std::vector<float> rows_;    // what forward() answered with, [rows, vocab]
  std::vector<Prefix> held_;   // whose logits each row of rows_ holds
};

}  // namespace tandem
