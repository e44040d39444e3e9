// What the step loop and the drafters need of a model: a forward pass over rows, and a cache for it.
#pragma once
#include <cstdint>
#include <span>

#include "src/base/logits.h"
#include "src/base/picking.h"
#include "src/model/forward_trace.h"
#include "src/model/kv_cache.h"
#include "src/model/model_spec.h"

namespace tandem {

// Rows of one pass. They go into cache slots size(), size() + 1, ... in order; `positions` are what rope sees.
struct Batch {
  std::span<const TokenId> tokens;
  std::span<const Position> positions;       // one a token
  std::span<const std::uint64_t> ancestors;  // empty: causal; else one a token, at most kMaxTreeNodes tokens
  std::span<const int> logits_rows;          // rows whose logits are wanted, ascending, at most kMaxTreeNodes
  const Picking* picking = nullptr;          // how a model that can may pick from those rows; positions one each
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Logits of the rows asked for, [logits_rows.size(), vocab], valid until the next forward, with or without picks; the
  // cache, one of make_cache(), grows by all rows. Throws Error(input) when the rows do not fit into the cache or a
  // token id is outside the embedding. Without a row in the head, a token's logit is -inf.
  virtual Logits forward(const Batch& batch, KvCache& cache) = 0;

  // The tokens whose rows a trimmed head kept at load; empty: it has them all.
  virtual std::span<const TokenId> head_tokens() const = 0;
  // Where the head was trimmed, gives rows to the tokens of this text (TrimmedHead::follow); else does nothing.
  virtual void follow(std::span<const TokenId> text) = 0;

  // From now on every forward overwrites `trace`, which outlives its use; null (as at first) records nothing and costs
  // nothing.
  virtual void set_trace(ForwardTrace* trace) = 0;

  virtual KvCache make_cache(int capacity, KvType type) const = 0;
  virtual const ModelSpec& spec() const = 0;
  virtual int max_rows() const = 0;       // most rows of one pass
  virtual int max_positions() const = 0;  // longest sequence
};

}  // namespace tandem
