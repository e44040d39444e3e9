// Products of matrix fragments by a whole warp: tensor cores on sm_80 and later, and a portable twin with the same
// operands and results for the emulation.
//
// Lane l = 4 g + t. A [16, k] holds rows g and g + 8, B [k, 8] column g, the sums C [16, 8] rows g and g + 8 of columns
// 2 t and 2 t + 1: {(g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)} (PTX ISA, "Matrix Fragments for mma").
// Integer sums are exact, so both twins give the same bits. Those of TF32 are sums of k products in an order that the
// hardware does not tell, so there the twin has the same rounding of its operands and the same chain of fragments only.
#pragma once
#include <bit>
#include <cstdint>

#include "kernels/cuda/launch.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TANDEM_TENSOR_CORES 1
#endif

namespace tandem::TANDEM_GPU {

inline constexpr int kMmaWarps = 8;  // of a block that calls these
inline constexpr int kMmaThreads = kMmaWarps * kWarpLanes;

#ifndef TANDEM_TENSOR_CORES
// Every lane's operands, for all lanes of its warp to read.
template <int kWords>
class SharedOperands {
 public:
  __device__ explicit SharedOperands(const std::uint32_t (&own)[kWords]) {
    STATIC_SHARED(std::uint32_t, all, kMmaThreads * kWords);
    words_ = all + threadIdx.x / kWarpLanes * kWarpLanes * kWords;
    for (int i = 0; i < kWords; ++i) words_[threadIdx.x % kWarpLanes * kWords + i] = own[i];
    __syncwarp();
  }
  __device__ std::uint32_t of(int lane, int word) const { return words_[lane * kWords + word]; }
  // Called when all is read, before the next operands are shared.
  __device__ void done() const { __syncwarp(); }

 private:
  std::uint32_t* words_;
};

__device__ inline int dot_bytes(std::uint32_t codes, std::uint32_t signed_bytes) {
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<int>(codes >> 8 * i & 255) * static_cast<std::int8_t>(signed_bytes >> 8 * i);
  }
  return sum;
}

// c += a b where each lane holds kSteps words of each of its rows and its column: word s of lane t is the s-th operand
// of step s. Term(a, b, sum) adds one word's products.
template <int kSteps, typename Sum, typename Term>
__device__ inline void portable_mma(Sum (&c)[4], const std::uint32_t (&a)[2 * kSteps], const std::uint32_t (&b)[kSteps],
                                    const Term& term) {
  std::uint32_t own[3 * kSteps];
  for (int i = 0; i < 2 * kSteps; ++i) own[i] = a[i];
  for (int i = 0; i < kSteps; ++i) own[2 * kSteps + i] = b[i];
  const SharedOperands<3 * kSteps> operands(own);
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), g = lane / 4, t = lane % 4;
  for (int step = 0; step < kSteps; ++step) {
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t left = operands.of(4 * g + k, 2 * step + i / 2),
                            right = operands.of(4 * (2 * t + i % 2) + k, 2 * kSteps + step);
        c[i] = term(left, right, c[i]);
      }
    }
  }
  operands.done();
}
#endif

// a: unsigned bytes (g, 4 t..), (g + 8, 4 t..), (g, 16 + 4 t..), (g + 8, 16 + 4 t..); b: signed (4 t.., g), (16 + 4
// t.., g).
__device__ inline void mma_bytes_32(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#ifdef TANDEM_TENSOR_CORES
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  portable_mma<2>(c, a, b, [](std::uint32_t x, std::uint32_t y, int sum) { return sum + dot_bytes(x, y); });
#endif
}

// a: (g, 4 t..), (g + 8, 4 t..); b: (4 t.., g).
__device__ inline void mma_bytes_16(int (&c)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1]) {
#ifdef TANDEM_TENSOR_CORES
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#else
  portable_mma<1>(c, a, b, [](std::uint32_t x, std::uint32_t y, int sum) { return sum + dot_bytes(x, y); });
#endif
}

// The part of a float that TF32 keeps: 10 bits of its fraction, the others cut off, as the hardware does.
__device__ inline std::uint32_t tf32_of(float value) { return std::bit_cast<std::uint32_t>(value) & 0xffffe000u; }

// a: TF32 (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); b: (t, g), (t + 4, g).
__device__ inline void mma_tf32_8(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#ifdef TANDEM_TENSOR_CORES
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  portable_mma<2>(c, a, b, [](std::uint32_t x, std::uint32_t y, float sum) {
    return fmaf(std::bit_cast<float>(x), std::bit_cast<float>(y), sum);
  });
#endif
}

}  // namespace tandem::TANDEM_GPU
