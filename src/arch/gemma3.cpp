// gemma3: five sliding layers and one that sees all, each kind with its own rope; norms of query and key heads.
#include "src/arch/gemma.h"
#include "src/arch/registry.h"
#include "src/base/error.h"

namespace tandem {

// Files have no key for the local base: the models were trained with 10,000 (Gemma Team 2025, arXiv 2503.19786), which
// rope.freq_base, the base of the other layers, must not replace.
ModelSpec read_gemma3(const GgufFile& file) {
  ModelSpec spec = read_gemma_spec(file, 62);
  read_sliding_layers(file, 6, 0, spec);
  spec.qk_norm = true;
  const std::string key = spec.architecture + ".rope.freq_base_swa";
  spec.sliding_rope_base = file.real_or(key, 10000);
  if (!(spec.sliding_rope_base > 0)) {
    fail(ErrorKind::model, "{}: {}: expected more than 0, got {}", file.name(), key, spec.sliding_rope_base);
  }
  spec.final_soft_cap = read_soft_cap(file, spec, "final_logit_softcapping", 0);
  return spec;
}

}  // namespace tandem
