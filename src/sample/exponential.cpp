#include "src/sample/exponential.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tandem {
namespace {

// Eight values side by side: one register of AVX-512, two of AVX2. Compilers left to themselves use half a register.
constexpr std::size_t kLanes = 8;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
using Words = std::uint64_t __attribute__((vector_size(kLanes * sizeof(std::uint64_t))));

// Cody and Waite 1980, "Software Manual for the Elementary Functions", ch. 6: exp(x) = 2^k exp(r) with |r| <= ln(2)
// / 2. The high part of ln 2 has 32 bits, so that k times it is exact. exp(r) is Taylor's sum up to r^13 / 13!, whose
// remainder is below 2^-57.
[[gnu::always_inline]] inline void exponential(Doubles& x) {
  constexpr double kLowest = -707;
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kRound = 0x1.8p52;  // what is added to it loses its fraction and lands in the low bits
  constexpr double kFactorials[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                    1.0 / 720,      1.0 / 120,     1.0 / 24,     1.0 / 6,     1.0 / 2};
  const Doubles shifted = x * kLog2E + kRound;
  const Doubles k = shifted - kRound;
  const Doubles r = (x - k * kLn2High) - k * kLn2Low;
  Doubles tail = 1.0 / 6227020800 * r + 1.0 / 479001600;
  for (const double factorial : kFactorials) tail = tail * r + factorial;
  const Doubles mantissa = 1 + (r + r * r * tail);
  Words bits, exponent;
  std::memcpy(&bits, &mantissa, sizeof bits);
  std::memcpy(&exponent, &shifted, sizeof exponent);
  // k, as bits of a double's exponent. Too low a value went through all this for nothing, as does NaN.
  bits = (bits + (exponent << 52)) & reinterpret_cast<Words>(x > kLowest);
  std::memcpy(&x, &bits, sizeof x);
}

[[gnu::always_inline]] inline void run(double* values, std::size_t count) {
  Doubles x{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::memcpy(&x, values + i, sizeof x);
    exponential(x);
    std::memcpy(values + i, &x, sizeof x);
  }
  if (i == count) return;
  std::memcpy(&x, values + i, (count - i) * sizeof(double));
  exponential(x);
  std::memcpy(values + i, &x, (count - i) * sizeof(double));
}

void run_portable(double* values, std::size_t count) { run(values, count); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void run_avx2(double* values, std::size_t count) { run(values, count); }
[[gnu::target("avx512f")]] void run_avx512(double* values, std::size_t count) { run(values, count); }
#endif

using Run = void (*)(double*, std::size_t);

Run best_run() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return run_avx512;
  if (__builtin_cpu_supports("avx2")) return run_avx2;
#endif
  return run_portable;
}

}  // namespace

void exponentials(std::span<double> values) { best_run()(values.data(), values.size()); }

}  // namespace tandem
