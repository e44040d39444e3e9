// llama: RMS norms, gated feed-forward, rope over adjacent pairs (GGUF stores q and k permuted for it), no biases.
#include "src/arch/registry.h"

namespace tandem {

ModelSpec read_llama(const GgufFile& file) {
  ModelSpec spec = read_common_spec(file);
  spec.rope_style = RopeStyle::adjacent;
  return spec;
}

}  // namespace tandem
