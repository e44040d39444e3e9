// phi3: query, key and value in one tensor, gate and up in another, rope over part of a head with factors a pair.
#include "src/arch/registry.h"

namespace tandem {
namespace {

// Files from before the key hold no window; llama.cpp's rule for them: that of the published models of this context.
int default_window(const ModelSpec& spec) {
  return spec.context == 4096 && (spec.layers == 32 || spec.layers == 40) ? 2047 : 0;
}

}  // namespace

ModelSpec read_phi3(const GgufFile& file) {
  ModelSpec spec = read_common_spec(file);
  spec.rope_style = RopeStyle::halves;
  // Some converters split them, and llama.cpp reads both.
  spec.fused_qkv = file.find("blk.0.attn_qkv.weight") != nullptr;
  spec.fused_gate_up = file.find("blk.0.ffn_gate.weight") == nullptr;
  const int window = static_cast<int>(
      file.integer_or(spec.architecture + ".attention.sliding_window", default_window(spec), 0, kMaxContext));
  if (window > 0 && window < spec.context) {
    spec.window = window;
    spec.sliding.assign(static_cast<std::size_t>(spec.layers), true);
  }
  return spec;
}

}  // namespace tandem
