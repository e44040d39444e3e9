// The forward pass, written once for every architecture and backend.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "src/model/device_rows.h"
#include "src/model/language_model.h"
#include "src/model/trimmed_head.h"
#include "src/model/weights.h"

namespace tandem {

class Transformer final : public LanguageModel {
 public:
  // Loads the weights of `file`, which must outlive this, as must `backend`. `max_rows`: most rows of one pass (at
  // least kMaxTreeNodes are allowed anyway). `max_positions`: longest sequence that will be run, at most spec.context.
  // `options`: how the weights differ from the file's.
  Transformer(ModelSpec spec, const GgufFile& file, Backend& backend, int max_rows, int max_positions,
              const WeightOptions& options = {});

  Logits forward(const Batch& batch, KvCache& cache) override;
  std::span<const TokenId> head_tokens() const override { return weights_.head_tokens; }
  void follow(std::span<const TokenId> text) override {
    if (trimmed_head_) trimmed_head_->follow(text);
  }
  void set_trace(ForwardTrace* trace) override { trace_ = trace; }

  const ModelSpec& spec() const override { return spec_; }
  const Weights& weights() const { return weights_; }
  int max_rows() const override { return max_rows_; }
  int max_positions() const override { return max_positions_; }
  Backend& backend() const { return backend_; }

  KvCache make_cache(int capacity, KvType type) const override {
    return KvCache(spec_, capacity, type, backend_, max_rows_);
  }

 private:
  struct Activations;  // views into scratch_ for a number of rows
  void check(const Batch& batch, const KvCache& cache) const;
  void attend(int index, const KvLayer& kv, int base, const Batch& batch, const Activations& a);
  void layer(int index, const KvLayer& kv, int base, const Batch& batch, const Activations& a);
  void norm_heads(Rows rows, const Weight& gain);  // of whole rows, heads side by side
  void record(std::string_view stage, Rows rows);
  Activations activations(int rows) const;
  RopeTable rope_table(int layer) const;
  // cos then sin, each [max_positions, rope_dims / 2]; arguments as for fill_rope_table().
  std::unique_ptr<Buffer> make_rope(double base, std::span<const double> divisors, double magnitude) const;

  ModelSpec spec_;
  Backend& backend_;
  int max_rows_;
  int max_positions_;
  Weights weights_;
  std::unique_ptr<TrimmedHead> trimmed_head_;  // null: the head has a row for each token
  std::unique_ptr<Buffer> scratch_;
  std::unique_ptr<Buffer> logits_;
  std::unique_ptr<DeviceRows> device_rows_;      // null where the host computes
  std::unique_ptr<Buffer> rope_, sliding_rope_;  // of make_rope(); the latter null where all layers share one
  ForwardTrace* trace_ = nullptr;
};

}  // namespace tandem
