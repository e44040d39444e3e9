// A model that computes the logits after each prefix once and answers from memory from then on.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/model/language_model.h"

namespace tandem {

// Stands in for `model` where the same short continuations come again and again. It keeps a tree of prefixes, and its
// caches hold, where a true one holds the key of a token, the prefix that ends there: truncate and keep_path move
// prefixes as they would move keys, so a sequence kept wrongly is answered for wrongly here too. Logits are bit for bit
// those of `model` as far as its rows do not depend on what else is in a pass.
class MemoisedModel final : public LanguageModel {
 public:
  // `model` outlives this. `kv_type`: of the one true cache, of `capacity` tokens, behind all answers. Logits of
  // prefixes are kept up to `most_bytes`; later ones are computed each time.
  MemoisedModel(LanguageModel& model, int capacity, KvType kv_type, std::size_t most_bytes);
  ~MemoisedModel() override;

  // `cache` is one of make_cache(). Throws as the model's own forward, which runs for prefixes that are new.
  Logits forward(const Batch& batch, KvCache& cache) override;
  std::span<const TokenId> head_tokens() const override { return model_.head_tokens(); }
  void follow(std::span<const TokenId>) override {}                          // each prefix follows itself
  void set_trace(ForwardTrace* trace) override { model_.set_trace(trace); }  // of the passes that run
  // Logits after these tokens, [vocab]; at least one. Valid until the next call of either.
  std::span<const float> logits_after(std::span<const TokenId> tokens);

  KvCache make_cache(int capacity, KvType type) const override;  // whatever the type, a slot is one prefix
  const ModelSpec& spec() const override { return model_.spec(); }
  int max_rows() const override { return model_.max_rows(); }
  int max_positions() const override { return model_.max_positions(); }
  int computed() const { return computed_; }  // prefixes whose logits the model was run for

 private:
  using Prefix = std::int32_t;  // index into nodes_; 0 is the empty prefix
  struct Node {
    Prefix parent;
    TokenId token;
    std::vector<float> logits;  // empty: not kept
  };

  Prefix extend(Prefix parent, TokenId token);
  std::span<const float> logits_of(Prefix prefix);
  void compute(Prefix prefix);

  LanguageModel& model_;
  KvCache cache_;                    // holds path_
  std::vector<TokenId> path_;        // tokens run last
  std::vector<TokenId> wanted_;      // scratch
  std::vector<Position> positions_;  // 0, 1, 2, ...
  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, Prefix> children_;  // by parent << 32 | token
  std::size_t bytes_left_;
  int computed_ = 0;
  std::vector<float> newest_;  // logits of the prefix computed last
  std::vector<float> rows_;    // what forward() answered with, [rows, vocab]
  std::vector<Prefix> held_;   // whose logits each row of rows_ holds
  struct Slots;                // backend and shape of the caches that hold prefixes
  std::unique_ptr<Slots> slots_;
};

}  // namespace tandem
