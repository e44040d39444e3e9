// Matrix products of a whole prefill chunk: cuBLAS on a device (gemm.cpp), plain loops in the emulation
// (kernels/simt/gemm_host.cpp). Not bit-equal to the kernels of decode passes; a test bounds the difference.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/platform.h"

namespace tandem::TANDEM_GPU {

enum class Element : std::uint8_t { f32, f16, bf16 };

constexpr std::size_t bytes_of(Element element) { return element == Element::f32 ? 4 : 2; }

// out[i, n] = sum over k of x[i, k] * w[n, k] (+ out[i, n] when `add`). All on the device, rows `*_stride` elements
// apart.
struct GemmCall {
  float* out;     // [rows, outputs]
  const void* x;  // [rows, cols] of `element`
  const void* w;  // [outputs, cols] of `element`
  int rows, outputs, cols;
  std::ptrdiff_t out_stride, x_stride, w_stride;
  Element element;  // of x and w; products are summed in f32
  bool add = false;
};

// The library's handle and workspace for one stream. Not thread-safe.
class Gemm {
 public:
  explicit Gemm(cudaStream_t stream);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // Queues one product. Throws Error(device) naming the shape when the library refuses it.
  void run(const GemmCall& call);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::TANDEM_GPU
