// A model that does as another one does, for tests that change one thing about it.
#pragma once
#include "src/model/language_model.h"

namespace tandem::test {

class WrappedModel : public LanguageModel {
 public:
  // `model` outlives this.
  explicit WrappedModel(LanguageModel& model) : model_(model) {}
  Logits forward(const Batch& batch, KvCache& cache) override { return model_.forward(batch, cache); }
  std::span<const TokenId> head_tokens() const override { return model_.head_tokens(); }
  void follow(std::span<const TokenId> text) override { model_.follow(text); }
  void set_trace(ForwardTrace* trace) override { model_.set_trace(trace); }
  KvCache make_cache(int capacity, KvType type) const override { return model_.make_cache(capacity, type); }
  const ModelSpec& spec() const override { return model_.spec(); }
  int max_rows() const override { return model_.max_rows(); }
  int max_positions() const override { return model_.max_positions(); }

 private:
  LanguageModel& model_;
};

}  // namespace tandem::test
