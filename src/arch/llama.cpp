// llama: RMS norms, gated feed-forward, rope over adjacent pairs (GGUF stores q and k permuted for it), and the biases
// on q, k and v that some models of the kind have.
#include "src/arch/registry.h"

namespace tandem {

ModelSpec read_llama(const GgufFile& file) {
  ModelSpec spec = read_common_spec(file);
  spec.rope_style = RopeStyle::adjacent;
  spec.qkv_bias = file.find("blk.0.attn_q.bias") != nullptr;
  return spec;
}

}  // namespace tandem
