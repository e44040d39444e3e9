// Scaled rope: what a file says about positions beyond the context that a model was first trained on.
#pragma once
#include "src/model/gguf.h"
#include "src/model/model_spec.h"

namespace tandem {

// Reads "<architecture>.rope.scaling.*" and the tensors rope_freqs (llama3), rope_factors_long and rope_factors_short
// (longrope), with llama.cpp's defaults: no type = linear, no factor = 1, no original context = context_length. Sets
// the spec's rope_divisors, rope_long_divisors, rope_original_context and rope_magnitude, and raises its context to
// what the scaling reaches. rope_base, rope_dims and context must be set. Throws Error(model) for a type that is not
// none, linear, yarn or longrope, and for a key or tensor that is missing or absurd.
void read_rope_scaling(const GgufFile& file, ModelSpec& spec);

}  // namespace tandem
