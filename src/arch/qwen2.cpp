// qwen2: as llama, with biases on q, k and v and rope over the two halves of a head.
#include "src/arch/registry.h"

namespace tandem {

ModelSpec read_qwen2(const GgufFile& file) {
  ModelSpec spec = read_common_spec(file);
  spec.rope_style = RopeStyle::halves;
  spec.qkv_bias = true;
  return spec;
}

}  // namespace tandem
