#include "src/arch/gemma.h"

#include <algorithm>
#include <cmath>

#include "src/arch/registry.h"
#include "src/base/error.h"

namespace tandem {
namespace {

constexpr int kMaxPeriod = 1 << 16;

std::vector<bool> in_groups(int layers, std::int64_t period) {
  std::vector<bool> sliding(static_cast<std::size_t>(layers));
  for (int i = 0; i < layers; ++i) sliding[static_cast<std::size_t>(i)] = period == 0 || i % period < period - 1;
  return sliding;
}

}  // namespace

ModelSpec read_gemma_spec(const GgufFile& file, int layers_of_27b) {
  ModelSpec spec = read_common_spec(file);
  spec.rope_style = RopeStyle::halves;
  spec.activation = Activation::gelu;
  spec.post_norms = true;
  spec.embedding_scale = std::sqrt(spec.width);
  if (spec.layers == layers_of_27b) spec.attention_scale = 1 / std::sqrt(spec.width / spec.heads);
  return spec;
}

void read_sliding_layers(const GgufFile& file, int period, int fallback, ModelSpec& spec) {
  const std::string prefix = spec.architecture + ".attention.";
  const std::string window = prefix + "sliding_window", pattern = prefix + "sliding_window_pattern";
  spec.window = static_cast<int>(fallback > 0 ? file.integer_or(window, fallback, 1, kMaxContext)
                                              : file.integer(window, 1, kMaxContext));
  const auto value = file.metadata().find(pattern);
  const auto* array = value == file.metadata().end() ? nullptr : std::get_if<GgufArray>(&value->second);
  if (array == nullptr) {
    spec.sliding = in_groups(spec.layers, file.integer_or(pattern, period, 0, kMaxPeriod));
    return;
  }
  const auto* flags = std::get_if<std::vector<bool>>(array);
  if (flags == nullptr || flags->size() != static_cast<std::size_t>(spec.layers)) {
    fail(ErrorKind::model, "{}: {}: expected {} booleans, one a layer, or a number of layers, got another array",
         file.name(), pattern, spec.layers);
  }
  spec.sliding = *flags;
}

double read_soft_cap(const GgufFile& file, const ModelSpec& spec, const char* key, double fallback) {
  const std::string name = spec.architecture + "." + key;
  const double cap = file.real_or(name, fallback);
  if (cap < 0) fail(ErrorKind::model, "{}: {}: expected 0 or more, got {}", file.name(), name, cap);
  return cap;
}

}  // namespace tandem
