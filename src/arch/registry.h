// The architectures this build runs: each turns a file's metadata into a ModelSpec.
#pragma once
#include <cstdint>

#include "src/model/gguf.h"
#include "src/model/model_spec.h"

namespace tandem {

// Far above any real model's.
inline constexpr std::int64_t kMaxContext = 1 << 24;

// Reads `general.architecture` and that architecture's metadata. Throws Error(model) for one that is not in the table
// (naming those that are), for a missing or absurd value, and for features that the forward pass does not do.
ModelSpec read_model_spec(const GgufFile& file);

// Metadata that llama-like architectures share, under "<architecture>.": sizes, norm epsilon, rope.
ModelSpec read_common_spec(const GgufFile& file);

ModelSpec read_llama(const GgufFile& file);
ModelSpec read_qwen2(const GgufFile& file);
ModelSpec read_qwen3(const GgufFile& file);
ModelSpec read_phi3(const GgufFile& file);
ModelSpec read_gemma2(const GgufFile& file);
ModelSpec read_gemma3(const GgufFile& file);

}  // namespace tandem
