// Products of passes with more rows than a decode pass has: weights are expanded panel by panel and multiplied by the
// library (gemm.h).
#pragma once
#include "kernels/cuda/cuda_weight.h"
#include "kernels/cuda/gemm.h"

namespace tandem::TANDEM_GPU {

// F32 weights are multiplied as F32, BF16 with inputs rounded to BF16, all others with weights and inputs rounded to
// F16: relatively by 2^-11 each (BF16 inputs: 2^-8). Not bit-equal to decode passes, whose inputs are int8.
class Prefill {
 public:
  explicit Prefill(const Stream& stream) : stream_(stream), gemm_(stream.get()) {}

  void run(std::span<const Projection> projections, Rows x);

 private:
  void multiply(const Projection& projection, Rows x, Element element);
  // `x` as `element`, to inputs_ and scales_.
  void narrow(Rows x, Element element);

  const Stream& stream_;
  Gemm gemm_;
  DeviceMemory panel_, inputs_, scales_;
};

}  // namespace tandem::TANDEM_GPU
