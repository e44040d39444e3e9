// The gates of a feed-forward block and the cap of logits, one value at a time.
#pragma once
#include <cmath>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

namespace tandem::TANDEM_GPU {

// gate(x) * up. Both gates are x / (1 + exp(-2 u)), with 1 + tanh(u) = 2 / (1 + exp(-2 u)) for gelu.
__device__ inline float gated_value(float x, float up, Gate gate) {
  const float u = gate == Gate::gelu ? 0.7978845608f * (x + 0.044715f * x * x * x) : 0.5f * x;
  return x / (1.f + std::exp(-2.f * u)) * up;
}

__device__ inline float capped(float x, float cap) { return cap * std::tanh(x / cap); }

}  // namespace tandem::TANDEM_GPU
