#include "kernels/registry.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "src/base/error.h"
#if defined(TANDEM_HAS_CUDA) || defined(TANDEM_HAS_SIMT)
#include "kernels/cuda/cuda_backend.h"
#endif

namespace tandem {
namespace {

#ifdef TANDEM_HAS_CUDA
constexpr bool kHasCuda = true;
bool gpu_is_usable() {
  std::string why;
  return cuda::has_device(why);
}
#else
constexpr bool kHasCuda = false;
bool gpu_is_usable() { return false; }
#endif

#ifdef TANDEM_HAS_SIMT
constexpr bool kHasSimt = true;
#else
constexpr bool kHasSimt = false;
#endif

[[noreturn]] void refuse(std::string_view kind) {
  fail(ErrorKind::config, "backend: this build has auto, cpu{}{} and reference, got '{}'", kHasCuda ? ", cuda" : "",
       kHasSimt ? ", cuda-simt" : "", kind);
}

}  // namespace

std::vector<std::string_view> backend_kinds() {
  std::vector<std::string_view> kinds{"auto", "cpu", "reference"};
  if (kHasCuda) kinds.push_back("cuda");
  if (kHasSimt) kinds.push_back("cuda-simt");
  return kinds;
}

std::unique_ptr<Backend> make_backend(std::string_view kind, ThreadPool& pool) {
  if (kind == "auto") kind = gpu_is_usable() ? "cuda" : "cpu";
  if (kind == "cpu") return make_cpu_backend(choose_isa(), pool);
  if (kind == "reference") return make_reference_backend(pool);
#ifdef TANDEM_HAS_CUDA
  if (kind == "cuda") return cuda::make_cuda_backend(pool);
#endif
#ifdef TANDEM_HAS_SIMT
  if (kind == "cuda-simt") return cuda_simt::make_cuda_backend(pool);
#endif
  refuse(kind);
}

}  // namespace tandem
