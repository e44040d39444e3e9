// gemma2: every other layer slides, soft caps on scores and logits.
#include "src/arch/gemma.h"
#include "src/arch/registry.h"

namespace tandem {

// Defaults of missing keys are those of the published models (Gemma Team 2024, arXiv 2408.00118), as in llama.cpp.
ModelSpec read_gemma2(const GgufFile& file) {
  ModelSpec spec = read_gemma_spec(file, 46);
  read_sliding_layers(file, 2, 4096, spec);
  spec.attention_soft_cap = read_soft_cap(file, spec, "attn_logit_softcapping", 50);
  spec.final_soft_cap = read_soft_cap(file, spec, "final_logit_softcapping", 30);
  return spec;
}

}  // namespace tandem
