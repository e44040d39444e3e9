// Device functions that a host compiler lacks: bits, integer atomics, and the float functions whose rounding CUDA
// defines.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

// NOLINTBEGIN(bugprone-macro-parentheses, bugprone-reserved-identifier, readability-identifier-naming): CUDA's
// The overloads of device code, so that mixed arguments convert as they do there.
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  }
  return result;
}
// sum + the four products of signed bytes.
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; ++i) sum += static_cast<std::int8_t>(a >> 8 * i) * static_cast<std::int8_t>(b >> 8 * i);
  return sum;
}

inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline int __float2int_rn(float a) { return static_cast<int>(std::nearbyint(a)); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

template <typename T>
T __ldg(const T* address) {
  return *address;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

namespace tandem::simt {

// Threads give way at barriers only, so that a plain update is atomic.
template <typename T, typename Update>
T updated(T* address, Update&& update) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const T before = *address;
  *address = update(before);
  return before;
}

}  // namespace tandem::simt

// Integers only: a sum of floats depends on the order in which threads arrive.
#define SIMT_ATOMIC(name, T, expression)                                             \
  inline T name(T* address, T value) {                                               \
    return tandem::simt::updated(address, [&](T old) -> T { return (expression); }); \
  }
#define SIMT_ATOMICS(T)                                                                               \
  SIMT_ATOMIC(atomicAdd, T, static_cast<T>(old + value))                                              \
  SIMT_ATOMIC(atomicMin, T, old < value ? old : value)                                                \
  SIMT_ATOMIC(atomicMax, T, old > value ? old : value)                                                \
  SIMT_ATOMIC(atomicAnd, T, old& value)                                                               \
  SIMT_ATOMIC(atomicOr, T, old | value)                                                               \
  SIMT_ATOMIC(atomicXor, T, old ^ value)                                                              \
  SIMT_ATOMIC(atomicExch, T, (static_cast<void>(old), value))                                         \
  inline T atomicCAS(T* address, T expected, T value) {                                               \
    return tandem::simt::updated(address, [&](T old) -> T { return old == expected ? value : old; }); \
  }
SIMT_ATOMICS(int)
SIMT_ATOMICS(unsigned)
SIMT_ATOMICS(unsigned long long)
#undef SIMT_ATOMICS
#undef SIMT_ATOMIC
inline int atomicSub(int* address, int value) { return atomicAdd(address, -value); }
inline unsigned atomicSub(unsigned* address, unsigned value) { return atomicAdd(address, 0u - value); }
float atomicAdd(float* address, float value) = delete;
double atomicAdd(double* address, double value) = delete;
// NOLINTEND(bugprone-macro-parentheses, bugprone-reserved-identifier, readability-identifier-naming)
