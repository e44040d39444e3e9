#include "kernels/registry.h"

#include <fmt/ranges.h>

#include <algorithm>

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

}  // namespace

std::vector<std::string_view> backend_kinds() {
  std::vector<std::string_view> kinds{"auto", "cpu", "reference"};
  if (kHasCuda) kinds.push_back("cuda");
  if (kHasSimt) kinds.push_back("cuda-simt");
  return kinds;
}

std::string why_not_built(std::string_view kind) {
  std::vector<std::string_view> built = backend_kinds();
  if (std::ranges::find(built, kind) != built.end()) return {};
  std::erase(built, "reference");  // is asked for by --reference
  const std::string_view needs = kind == "cuda"        ? " ('cuda' is built where CMake finds nvcc)"
                                 : kind == "cuda-simt" ? " ('cuda-simt' is built where CMake finds a CUDA toolkit)"
                                                       : "";
  return fmt::format("this build has {}, got '{}'{}", fmt::join(built, ", "), kind, needs);
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
  fail(ErrorKind::config, "backend: {}", why_not_built(kind));
}

}  // namespace tandem
