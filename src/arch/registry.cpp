#include "src/arch/registry.h"

#include <array>
#include <cmath>
#include <string>

#include "src/arch/rope_scaling.h"
#include "src/base/error.h"

namespace tandem {
namespace {

struct Entry {
  std::string_view name;
  ModelSpec (*read)(const GgufFile&);
};
constexpr std::array kArchitectures{
    Entry{"llama", read_llama}, Entry{"qwen2", read_qwen2},   Entry{"qwen3", read_qwen3},
    Entry{"phi3", read_phi3},   Entry{"gemma2", read_gemma2}, Entry{"gemma3", read_gemma3},
};

// Limits far above any real model: they keep sizes inside 32-bit arithmetic before a tensor is looked at.
constexpr std::int64_t kMaxWidth = 1 << 20, kMaxLayers = 4096, kMaxVocab = 1 << 24;

int checked(const GgufFile& file, const std::string& key, std::int64_t high) {
  return static_cast<int>(file.integer(key, 1, high));
}

}  // namespace

ModelSpec read_model_spec(const GgufFile& file) {
  const std::string name = file.text("general.architecture");
  std::string known;
  for (const Entry& entry : kArchitectures) {
    if (entry.name == name) return entry.read(file);
    known += known.empty() ? "" : ", ";
    known += entry.name;
  }
  fail(ErrorKind::model, "{}: general.architecture: expected one of {}, got {}", file.name(), known, name);
}

ModelSpec read_common_spec(const GgufFile& file) {
  ModelSpec spec;
  spec.architecture = file.text("general.architecture");
  const std::string prefix = spec.architecture + ".";
  spec.layers = checked(file, prefix + "block_count", kMaxLayers);
  spec.width = checked(file, prefix + "embedding_length", kMaxWidth);
  spec.ffn = checked(file, prefix + "feed_forward_length", kMaxWidth);
  spec.heads = checked(file, prefix + "attention.head_count", 4096);
  spec.kv_heads = static_cast<int>(file.integer_or(prefix + "attention.head_count_kv", spec.heads, 1, spec.heads));
  spec.context = checked(file, prefix + "context_length", kMaxContext);
  if (spec.heads % spec.kv_heads != 0) {
    fail(ErrorKind::model, "{}: {}attention.head_count_kv: expected a divisor of {} heads, got {}", file.name(), prefix,
         spec.heads, spec.kv_heads);
  }
  const int default_dim = spec.width / spec.heads;
  spec.head_dim = static_cast<int>(file.integer_or(prefix + "attention.key_length", default_dim, 1, kMaxWidth));
  const std::int64_t value_dim = file.integer_or(prefix + "attention.value_length", spec.head_dim, 1, kMaxWidth);
  if (value_dim != spec.head_dim || static_cast<std::int64_t>(spec.heads) * spec.head_dim > kMaxWidth) {
    fail(ErrorKind::model, "{}: {}attention: {} heads with keys of {} and values of {} are not supported", file.name(),
         prefix, spec.heads, spec.head_dim, value_dim);
  }
  spec.norm_epsilon = static_cast<float>(file.real(prefix + "attention.layer_norm_rms_epsilon"));
  spec.rope_base = file.real_or(prefix + "rope.freq_base", 10000);
  spec.rope_dims = static_cast<int>(file.integer_or(prefix + "rope.dimension_count", spec.head_dim, 2, spec.head_dim));
  if (spec.rope_dims % 2 != 0 || !(spec.rope_base > 0) || !(spec.norm_epsilon >= 0)) {
    fail(ErrorKind::model, "{}: {}rope: {} dimensions with base {} and norm epsilon {} are not valid", file.name(),
         prefix, spec.rope_dims, spec.rope_base, spec.norm_epsilon);
  }
  const std::int64_t experts = file.integer_or(prefix + "expert_count", 0, 0, kMaxWidth);
  if (experts > 0) {
    fail(ErrorKind::model,
         "{}: {}expert_count: expected 0, got {}; mixtures of experts are not available in this version", file.name(),
         prefix, experts);
  }
  spec.attention_scale = 1 / std::sqrt(spec.head_dim);
  read_rope_scaling(file, spec);

  const GgufTensor* embedding = file.find(spec.embedding);
  if (embedding == nullptr) fail(ErrorKind::model, "{}: tensor {}: missing", file.name(), spec.embedding);
  if (embedding->rows() > kMaxVocab) {
    fail(ErrorKind::model, "{}: tensor {}: expected at most {} rows, got {}", file.name(), spec.embedding, kMaxVocab,
         embedding->rows());
  }
  spec.vocab = static_cast<int>(embedding->rows());
  return spec;
}

}  // namespace tandem
