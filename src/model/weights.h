// The weights of a model, loaded through a backend.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "src/model/gguf.h"
#include "src/model/model_spec.h"

namespace tandem {

struct LayerWeights {
  std::unique_ptr<Weight> attention_norm;                    // [1, width]
  std::unique_ptr<Weight> query, key, value;                 // [query_width | kv_width, width]
  std::unique_ptr<Weight> query_bias, key_bias, value_bias;  // [1, query_width | kv_width], null without biases
  std::unique_ptr<Weight> query_norm, key_norm;              // [1, head_dim], one for all heads; null without
  std::unique_ptr<Weight> attention_output;                  // [width, query_width]
  std::unique_ptr<Weight> post_attention_norm;               // [1, width], null without
  std::unique_ptr<Weight> ffn_norm;                          // [1, width]
  std::unique_ptr<Weight> gate, up;                          // [ffn, width]
  std::unique_ptr<Weight> down;                              // [width, ffn]
  std::unique_ptr<Weight> post_ffn_norm;                     // [1, width], null without
};

// How a model may be made cheaper than its file, for drafting: both change its logits.
struct WeightOptions {
  // Q4_0 or Q8_0: matrices of formats with more bits a value are converted to it, where rows are whole blocks of it.
  // The table of embeddings stays as it is.
  std::optional<Format> quantize;
  // Rows of the output head to keep, ascending token ids; empty = all.
  std::vector<TokenId> head_tokens;
};

struct Weights {
  std::unique_ptr<Weight> embedding;  // [vocab, width]
  std::vector<LayerWeights> layers;
  std::unique_ptr<Weight> output_norm;  // [1, width]
  std::unique_ptr<Weight> output;       // [head rows, width], null when the head is the embedding as it is
  std::vector<TokenId> head_tokens;     // token of each row of the head; empty: row = token
  std::unique_ptr<Weight> head_table;   // [vocab, width] for lookup: all rows of a head that was trimmed; else null

  const Weight& head() const { return output ? *output : *embedding; }
  // Bytes of the file that one pass over one row reads (the embedding as a table not counted).
  std::size_t bytes_per_pass() const;
  // Multiply-adds of all matrices for `rows` rows of which `logits_rows` reach the output head; attention not counted.
  double multiplies(int rows, int logits_rows) const;
};

// Loads every tensor the spec asks for, each checked for its shape. `file` must outlive the weights. Throws
// Error(model), also for a file with a tensor that the spec does not ask for.
Weights load_weights(const GgufFile& file, const ModelSpec& spec, Backend& backend, const WeightOptions& options = {});

}  // namespace tandem
