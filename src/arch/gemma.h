// What gemma2 and gemma3 have in common.
#pragma once
#include "src/model/gguf.h"
#include "src/model/model_spec.h"

namespace tandem {

// Rope over the two halves of a head, gelu, a norm before and after attention and feed-forward, embeddings times
// sqrt(width). The norms of a GGUF file hold 1 + weight already. Scores are scaled by 1 / sqrt(head_dim) but in the 27B
// models, known by their `layers_of_27b` layers, where it is 1 / sqrt(width / heads): query_pre_attn_scalar of the
// original has no key in GGUF.
ModelSpec read_gemma_spec(const GgufFile& file, int layers_of_27b);

// Sets which layers slide: by attention.sliding_window_pattern, a flag a layer or the size of groups whose last layer
// sees all (0: every layer slides), else in groups of `period`; and the window, the `fallback` where the key is missing
// (0: it must be there). Throws Error(model).
void read_sliding_layers(const GgufFile& file, int period, int fallback, ModelSpec& spec);

// A soft cap under this key of the architecture, the fallback where it is missing; 0 = none. Throws Error(model) when
// negative.
double read_soft_cap(const GgufFile& file, const ModelSpec& spec, const char* key, double fallback);

}  // namespace tandem
