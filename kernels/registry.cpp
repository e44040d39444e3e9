#include "kernels/registry.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "src/base/error.h"

namespace tandem {

std::unique_ptr<Backend> make_backend(std::string_view kind, ThreadPool& pool) {
  if (kind == "auto" || kind == "cpu") return make_cpu_backend(choose_isa(), pool);
  if (kind == "reference") return make_reference_backend(pool);
  if (kind == "cuda")
    fail(ErrorKind::config, "backend: expected auto, cpu or reference, got 'cuda', which this build does not have");
  fail(ErrorKind::config, "backend: expected auto, cpu, cuda or reference, got '{}'", kind);
}

}  // namespace tandem
