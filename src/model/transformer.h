// The forward pass, written once for every architecture and backend.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "src/base/logits.h"
#include "src/model/forward_trace.h"
#include "src/model/kv_cache.h"
#include "src/model/model_spec.h"
#include "src/model/trimmed_head.h"
#include "src/model/weights.h"

namespace tandem {

// Rows of one pass. They go into cache slots size(), size() + 1, ... in order; `positions` are what rope sees.
struct Batch {
  std::span<const TokenId> tokens;
  std::span<const Position> positions;       // one a token
  std::span<const std::uint64_t> ancestors;  // empty: causal; else one a token, at most kMaxTreeNodes tokens
  std::span<const int> logits_rows;          // rows whose logits are wanted, ascending, at most kMaxTreeNodes
};

class Transformer {
 public:
  // Loads the weights of `file`, which must outlive this, as must `backend`. `max_rows`: most rows of one pass (at
  // least kMaxTreeNodes are allowed anyway). `max_positions`: longest sequence that will be run, at most spec.context.
  // `options`: how the weights differ from the file's.
  Transformer(ModelSpec spec, const GgufFile& file, Backend& backend, int max_rows, int max_positions,
              const WeightOptions& options = {});

  // Logits of the rows asked for, [logits_rows.size(), vocab], valid until the next forward; the cache grows by all
  // rows. Throws Error(input) when the rows do not fit into the cache or a token id is outside the embedding.
  // Without a row in the head, a token's logit is -inf.
  Logits forward(const Batch& batch, KvCache& cache);

  // From now on every forward overwrites `trace`, which outlives its use; null (as at first) records nothing and costs
  // nothing.
  void set_trace(ForwardTrace* trace) { trace_ = trace; }

  // Where the head was trimmed, gives rows to the tokens of this text (TrimmedHead::follow); else does nothing.
  void follow(std::span<const TokenId> text) {
    if (trimmed_head_) trimmed_head_->follow(text);
  }

  const ModelSpec& spec() const { return spec_; }
  const Weights& weights() const { return weights_; }
  int max_rows() const { return max_rows_; }
  int max_positions() const { return max_positions_; }
  Backend& backend() const { return backend_; }

  KvCache make_cache(int capacity, KvType type) const { return KvCache(spec_, capacity, type, backend_); }

 private:
  struct Activations;  // views into scratch_ for a number of rows
  void check(const Batch& batch, const KvCache& cache) const;
  void layer(int index, const KvLayer& kv, int base, const Batch& batch, const Activations& a);
  void record(std::string_view stage, Rows rows);
  Activations activations(int rows) const;
  RopeTable rope_table() const;

  ModelSpec spec_;
  Backend& backend_;
  int max_rows_;
  int max_positions_;
  Weights weights_;
  std::unique_ptr<TrimmedHead> trimmed_head_;  // null: the head has a row for each token
  std::unique_ptr<Buffer> scratch_;
  std::unique_ptr<Buffer> logits_;
  std::unique_ptr<Buffer> rope_;  // cos then sin, each [max_positions, rope_dims / 2]
  ForwardTrace* trace_ = nullptr;
};

}  // namespace tandem
