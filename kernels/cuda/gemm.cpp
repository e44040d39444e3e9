// The one place where cuBLAS is called; host code only. Row-major [rows, cols] is column-major [cols, rows], so that
// out = x w^T is computed as out^T = w x^T, both inputs read along their rows.
//
// The library is opened when a backend is made: to load its 600 MB with the program would cost every command, those
// that use no device too, about 0.1 s.
#include "kernels/cuda/gemm.h"

#include <cublas_v2.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "kernels/cuda/memory.h"
#include "src/base/error.h"

namespace tandem::cuda {
namespace {

// What the library asks for on recent devices; its own allocation could not be captured in a graph.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

constexpr cudaDataType_t type_of(Element element) {
  return element == Element::f32 ? CUDA_R_32F : element == Element::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

// The functions of the library that are called here.
class Cublas {
 public:
  // Throws Error(device) when it is not found, or is another than this build knows.
  Cublas() : library_(dlopen(name().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) fail(ErrorKind::device, "cuda: cuBLAS cannot be loaded: {}", dlerror());
    find(create, "cublasCreate_v2");
    find(destroy, "cublasDestroy_v2");
    find(set_stream, "cublasSetStream_v2");
    find(set_workspace, "cublasSetWorkspace_v2");
    find(set_math_mode, "cublasSetMathMode");
    find(gemm, "cublasGemmEx_64");
    find(status_string, "cublasGetStatusString");
  }

  void check(cublasStatus_t status, const char* what) const {
    if (status != CUBLAS_STATUS_SUCCESS) fail(ErrorKind::device, "cuda: {}: {}", what, status_string(status));
  }

  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasGemmEx_64) gemm = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;

 private:
  static std::string name() { return fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR); }
  template <typename Function>
  void find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(library_, symbol));
    if (function == nullptr) fail(ErrorKind::device, "cuda: {} has no {}", name(), symbol);
  }

  void* library_;
};

// Opened once and never closed: it does not unload well.
const Cublas& cublas() {
  static const Cublas library;
  return library;
}

}  // namespace

struct Gemm::State {
  State() { library.check(library.create(&handle), "cublasCreate"); }
  ~State() { library.destroy(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Cublas& library = cublas();
  cublasHandle_t handle = nullptr;
  DeviceMemory workspace{kWorkspaceBytes};
};

Gemm::Gemm(cudaStream_t stream) : state_(std::make_unique<State>()) {
  const Cublas& library = state_->library;
  library.check(library.set_stream(state_->handle, stream), "cublasSetStream");
  library.check(library.set_workspace(state_->handle, state_->workspace.data(), kWorkspaceBytes), "cublasSetWorkspace");
  // Sums of halves stay in f32 when the library splits them over blocks.
  library.check(library.set_math_mode(state_->handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
                "cublasSetMathMode");
}

Gemm::~Gemm() = default;

void Gemm::run(const GemmCall& call) {
  const float one = 1, add = call.add ? 1 : 0;
  const cublasStatus_t status =
      state_->library.gemm(state_->handle, CUBLAS_OP_T, CUBLAS_OP_N, call.outputs, call.rows, call.cols, &one, call.w,
                           type_of(call.element), call.w_stride, call.x, type_of(call.element), call.x_stride, &add,
                           call.out, CUDA_R_32F, call.out_stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  if (status != CUBLAS_STATUS_SUCCESS) {
    fail(ErrorKind::device, "cuda: product of [{}, {}] and [{}, {}]: {}", call.rows, call.cols, call.outputs, call.cols,
         state_->library.status_string(status));
  }
}

}  // namespace tandem::cuda
