// qwen3: as qwen2 without biases, with an RMS norm of each query and key head before rope.
#include "src/arch/registry.h"

namespace tandem {

ModelSpec read_qwen3(const GgufFile& file) {
  ModelSpec spec = read_common_spec(file);
  spec.rope_style = RopeStyle::halves;
  spec.qk_norm = true;
  return spec;
}

}  // namespace tandem
