// Quantisers, norm, gate and conversions: one row or part of a row a call, sixteen lanes at a time.
#pragma once
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/kernel_table.h"

namespace tandem::cpu {
namespace {

constexpr float kSmallestPeak = 1e-36f;  // below it 127 / peak would overflow; such inputs count as zeros

// A zero that becomes NaN when an input is not finite, so that a bad row stays bad.
[[gnu::always_inline]] inline F32x16 taint(F32x16 x, F32x16 so_far) { return fma(x, zeros(), so_far); }

void quantise_group(const float* x, int count, GroupActs* acts) {
  F32x16 v[16], t[16], largest = zeros();
  for (int i = 0; i < 16; ++i) {
    const int left = count - 16 * i;
    v[i] = left >= 16 ? load(x + 16 * i) : left > 0 ? load_first(x + 16 * i, left) : zeros();
    t[i] = abs(v[i]);
    largest = max(largest, t[i]);
  }
  const F32x16 sums16 = sum_lanes(t);
  const float peak = reduce_max(largest), sum16 = reduce_max(sums16);
  // 1015 leaves room for 16 roundings of one half.
  const float by_peak = 127.f / peak, by_sum = 1015.f / sum16;
  const float inverse = peak > kSmallestPeak ? (by_peak < by_sum ? by_peak : by_sum) : 0.f;
  const float taint_of_all = reduce_add(taint(sums16, zeros()));  // a sum may overflow where no input does
  const bool finite = taint_of_all == 0;
  acts->scale = (inverse > 0 ? 1.f / inverse : 0.f) + taint_of_all;
  for (int i = 0; i < 16; ++i) {
    const I32x16 q = finite ? to_int(mul(v[i], splat(inverse))) : zeros_int();
    store_bytes(acts->q + 16 * i, q);
    t[i] = to_float(q);  // small integers: their sums are exact
  }
  float sums[16];
  store(sums, sum_lanes(t));
  for (int i = 0; i < 16; ++i) acts->minus_32_sum16[i] = -32 * static_cast<std::int32_t>(sums[i]);
  for (int j = 0; j < 8; ++j) {
    const auto sum32 = static_cast<std::int32_t>(sums[2 * j] + sums[2 * j + 1]);
    acts->minus_16_sum32[j] = -16 * sum32;
    acts->sum32[j] = static_cast<std::int16_t>(sum32);
  }
}

void quantise_blocks(const float* x, int count, BlockActs* acts) {
  for (int j = 0; j < 8; ++j) {
    const int left = count - 32 * j;
    const float* p = x + 32 * j;
    const F32x16 a = left >= 16 ? load(p) : left > 0 ? load_first(p, left) : zeros();
    const F32x16 b = left >= 32 ? load(p + 16) : left > 16 ? load_first(p + 16, left - 16) : zeros();
    const float peak = reduce_max(max(abs(a), abs(b)));
    const float inverse = peak > kSmallestPeak ? 127.f / peak : 0.f;
    const float taint_of_all = reduce_add(taint(a, taint(b, zeros())));
    const bool finite = taint_of_all == 0;
    const I32x16 qa = finite ? to_int(mul(a, splat(inverse))) : zeros_int();
    const I32x16 qb = finite ? to_int(mul(b, splat(inverse))) : zeros_int();
    store_bytes(acts->q + 32 * j, qa);
    store_bytes(acts->q + 32 * j + 16, qb);
    const std::int32_t sum = reduce_add_int(add_int(qa, qb));
    const float scale = peak / 127.f + taint_of_all;
    acts->minus_16_sum[j] = -16 * sum;
    acts->minus_128_sum[j] = -128 * sum;
    acts->scale[j] = scale;
    acts->scaled_sum[j] = scale * static_cast<float>(sum);
  }
}

// Squares go to four sums of 16 lanes, the last partial vector to the first.
void rms_norm(float* out, const float* x, const float* gain, int count, float epsilon) {
  F32x16 s[4] = {zeros(), zeros(), zeros(), zeros()};
  int i = 0;
  for (; i + 64 <= count; i += 64) {
    for (int k = 0; k < 4; ++k) {
      const F32x16 v = load(x + i + 16 * k);
      s[k] = fma(v, v, s[k]);
    }
  }
  for (; i < count; i += 16) {
    const F32x16 v = load_first(x + i, count - i);
    s[0] = fma(v, v, s[0]);
  }
  const float total = reduce_add(add(add(s[0], s[1]), add(s[2], s[3])));
  const F32x16 scale = splat(1.f / __builtin_sqrtf(total / static_cast<float>(count) + epsilon));
  for (i = 0; i + 16 <= count; i += 16) store(out + i, mul(mul(load(x + i), scale), load(gain + i)));
  if (i < count) {
    store_first(out + i, mul(mul(load_first(x + i, count - i), scale), load_first(gain + i, count - i)), count - i);
  }
}

// gate / (1 + exp(-gate)) * up
[[gnu::always_inline]] inline F32x16 silu_times(F32x16 gate, F32x16 up) {
  const F32x16 one = splat(1.f);
  return mul(div(gate, add(one, exp_lanes(sub(zeros(), gate)))), up);
}
// gate / 2 (1 + tanh(u)) * up = gate / (1 + exp(-2u)) * up with u = sqrt(2 / pi) (gate + 0.044715 gate^3)
[[gnu::always_inline]] inline F32x16 gelu_times(F32x16 gate, F32x16 up) {
  const F32x16 one = splat(1.f);
  const F32x16 cubic = fma(mul(splat(0.044715f), mul(gate, gate)), gate, gate);
  return mul(div(gate, add(one, exp_lanes(mul(splat(-1.59576912f), cubic)))), up);
}

// out = op(a, b), lane by lane. out may be a or b.
template <typename Op>
[[gnu::always_inline]] inline void for_lanes(float* out, const float* a, const float* b, int count, Op op) {
  int i = 0;
  for (; i + 16 <= count; i += 16) store(out + i, op(load(a + i), load(b + i)));
  if (i < count) store_first(out + i, op(load_first(a + i, count - i), load_first(b + i, count - i)), count - i);
}

void silu_gate(float* out, const float* gate, const float* up, int count) {
  for_lanes(
      out, gate, up, count, [](F32x16 g, F32x16 u) __attribute__((always_inline)) { return silu_times(g, u); });
}
void gelu_gate(float* out, const float* gate, const float* up, int count) {
  for_lanes(
      out, gate, up, count, [](F32x16 g, F32x16 u) __attribute__((always_inline)) { return gelu_times(g, u); });
}

void add_rows(float* y, const float* x, int count) {
  for_lanes(
      y, y, x, count, [](F32x16 a, F32x16 b) __attribute__((always_inline)) { return add(a, b); });
}

void scale_row(float* x, float factor, int count) {
  for_lanes(
      x, x, x, count, [=](F32x16 a, F32x16) __attribute__((always_inline)) { return mul(a, splat(factor)); });
}

void soft_cap_row(float* x, float cap, int count) {
  for_lanes(
      x, x, x, count, [=](F32x16 a, F32x16) __attribute__((always_inline)) { return soft_cap_lanes(a, cap); });
}

void to_half(std::uint8_t* out, const float* x, int count) {
  int i = 0;
  for (; i + 16 <= count; i += 16) store_half_first(out + 2 * i, load(x + i), 16);
  if (i < count) store_half_first(out + 2 * i, load_first(x + i, count - i), count - i);
}

// Blocks of the cache: scale = largest / 127 rounded to f16, codes = the nearest multiples of that rounded scale. A
// block that is not finite gets a NaN scale, so that it stays bad.
void to_q8_0(std::uint8_t* out, const float* x, int count) {
  for (; count > 0; count -= kKvBlock, x += kKvBlock, out += kKvBlockBytes) {
    const F32x16 a = load(x), b = load(x + 16);
    const float peak = reduce_max(max(abs(a), abs(b)));
    const bool finite = reduce_add(taint(a, taint(b, zeros()))) == 0;
    store_half_first(out, splat(finite ? peak / 127.f : __builtin_nanf("")), 1);
    const F32x16 scale = splat_half(out);
    float first[16];
    store(first, scale);
    const auto code = [&](F32x16 v) {
      // A scale among f16's subnormals is coarse; 127 of it may be less than the largest.
      return first[0] > 0 ? to_int(min(splat(127.f), max(splat(-127.f), div(v, scale)))) : zeros_int();
    };
    store_bytes(reinterpret_cast<std::int8_t*>(out) + 2, code(a));
    store_bytes(reinterpret_cast<std::int8_t*>(out) + 18, code(b));
  }
}

}  // namespace
}  // namespace tandem::cpu
