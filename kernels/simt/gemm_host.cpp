// The host twin of kernels/cuda/gemm.cpp: the same product by plain loops, summed in f32 as cuBLAS does, though in
// another order.
#include <cstring>

#include "kernels/cuda/gemm.h"
#include "kernels/simt/stream.h"
#include "src/base/half.h"

namespace tandem::cuda_simt {
namespace {

float value_at(const void* data, std::ptrdiff_t i, Element element) {
  if (element == Element::f32) return static_cast<const float*>(data)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
  return element == Element::f16 ? half_to_float(bits) : bf16_to_float(bits);
}

void multiply(const GemmCall& call) {
  for (int i = 0; i < call.rows; ++i) {
    for (int n = 0; n < call.outputs; ++n) {
      float sum = 0;
      for (int k = 0; k < call.cols; ++k) {
        sum += value_at(call.x, i * call.x_stride + k, call.element) *
               value_at(call.w, n * call.w_stride + k, call.element);
      }
      float& out = call.out[i * call.out_stride + n];
      out = call.add ? out + sum : sum;
    }
  }
}

}  // namespace

struct Gemm::State {
  cudaStream_t stream;
};

Gemm::Gemm(cudaStream_t stream) : state_(new State{stream}) {}
Gemm::~Gemm() = default;

void Gemm::run(const GemmCall& call) {
  simt::enqueue(state_->stream, [=] { multiply(call); });
}

}  // namespace tandem::cuda_simt
