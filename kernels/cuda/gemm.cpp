// The one place where cuBLAS is called; host code only. Row-major [rows, cols] is column-major [cols, rows], so that
// out = x w^T is computed as out^T = w x^T, both inputs read along their rows.
#include "kernels/cuda/gemm.h"

#include <cublas_v2.h>
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

void check_cublas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(ErrorKind::device, "cuda: {}: {}", what, cublasGetStatusString(status));
}

}  // namespace

struct Gemm::State {
  State() { check_cublas(cublasCreate(&handle), "cublasCreate"); }
  ~State() { cublasDestroy(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  cublasHandle_t handle = nullptr;
  DeviceMemory workspace{kWorkspaceBytes};
};

Gemm::Gemm(cudaStream_t stream) : state_(std::make_unique<State>()) {
  check_cublas(cublasSetStream(state_->handle, stream), "cublasSetStream");
  check_cublas(cublasSetWorkspace(state_->handle, state_->workspace.data(), kWorkspaceBytes), "cublasSetWorkspace");
  // Sums of halves stay in f32 when the library splits them over blocks.
  check_cublas(cublasSetMathMode(state_->handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
               "cublasSetMathMode");
}

Gemm::~Gemm() = default;

void Gemm::run(const GemmCall& call) {
  const float one = 1, add = call.add ? 1 : 0;
  const cublasStatus_t status = cublasGemmEx(
      state_->handle, CUBLAS_OP_T, CUBLAS_OP_N, call.outputs, call.rows, call.cols, &one, call.w, type_of(call.element),
      static_cast<int>(call.w_stride), call.x, type_of(call.element), static_cast<int>(call.x_stride), &add, call.out,
      CUDA_R_32F, static_cast<int>(call.out_stride), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  if (status != CUBLAS_STATUS_SUCCESS) {
    fail(ErrorKind::device, "cuda: product of [{}, {}] and [{}, {}]: {}", call.rows, call.cols, call.outputs, call.cols,
         cublasGetStatusString(status));
  }
}

}  // namespace tandem::cuda
