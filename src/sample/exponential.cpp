#include "src/sample/exponential.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tandem {
namespace {

// Cody and Waite 1980, "Software Manual for the Elementary Functions", ch. 6: exp(x) = 2^k exp(r) with |r| <= ln(2)
// / 2. The high part of ln 2 has 32 bits, so that k times it is exact. exp(r) is Taylor's sum up to r^13 / 13!, whose
// remainder is below 2^-57.
inline double exponential(double x) {
  constexpr double kLowest = -707;
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kRound = 0x1.8p52;  // what is added to it loses its fraction and lands in the low bits
  const double shifted = x * kLog2E + kRound;
  const double k = shifted - kRound;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double tail = 1.0 / 6227020800;
  tail = tail * r + 1.0 / 479001600;
  tail = tail * r + 1.0 / 39916800;
  tail = tail * r + 1.0 / 3628800;
  tail = tail * r + 1.0 / 362880;
  tail = tail * r + 1.0 / 40320;
  tail = tail * r + 1.0 / 5040;
  tail = tail * r + 1.0 / 720;
  tail = tail * r + 1.0 / 120;
  tail = tail * r + 1.0 / 24;
  tail = tail * r + 1.0 / 6;
  tail = tail * r + 1.0 / 2;
  const double mantissa = 1 + (r + r * r * tail);
  const auto exponent = std::bit_cast<std::uint64_t>(shifted) << 52;  // k, as bits of a double's exponent
  // Too low a value went through all this for nothing: a mask, because a branch would keep compilers from vector code.
  const std::uint64_t keep = -static_cast<std::uint64_t>(x > kLowest);
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(mantissa) + exponent) & keep);
}

[[gnu::always_inline]] inline void run(double* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = exponential(values[i]);
}

void run_portable(double* values, std::size_t count) { run(values, count); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void run_avx2(double* values, std::size_t count) { run(values, count); }
#endif

using Run = void (*)(double*, std::size_t);

Run best_run() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return run_avx2;
#endif
  return run_portable;
}

}  // namespace

void exponentials(std::span<double> values) { best_run()(values.data(), values.size()); }

}  // namespace tandem
