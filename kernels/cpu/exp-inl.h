// The exponential of sixteen lanes and what follows from it: the same operations on every lane, so one result per
// input.
#pragma once

namespace tandem::cpu {
namespace {

// exp(x) within 2 ulp for -87 <= x <= 88; below that 1.2e-38 and less, above that 1.6e38; NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2 (ln 2 in two parts, n times the first is exact), then the Taylor series of r to
// degree 7.
[[gnu::always_inline]] inline F32x16 exp_lanes(F32x16 x) {
  const F32x16 t = min(splat(88.f), max(splat(-87.3f), x));
  const I32x16 n = to_int(mul(t, splat(1.44269504f)));
  const F32x16 k = to_float(n);
  F32x16 r = fnma(k, splat(0.693359375f), t);
  r = fnma(k, splat(-2.12194440e-4f), r);
  F32x16 p = splat(1.f / 5040);
  p = fma(p, r, splat(1.f / 720));
  p = fma(p, r, splat(1.f / 120));
  p = fma(p, r, splat(1.f / 24));
  p = fma(p, r, splat(1.f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.f));
  p = fma(p, r, splat(1.f));
  return mul(p, power_of_two(n));
}

// cap tanh(x / cap), within 8 eps cap; NaN stays NaN. tanh(t) = 1 - 2 / (exp(2t) + 1).
[[gnu::always_inline]] inline F32x16 soft_cap_lanes(F32x16 x, float cap) {
  const F32x16 one = splat(1.f);
  const F32x16 part = div(splat(2.f), add(exp_lanes(mul(x, splat(2.f / cap))), one));
  return mul(splat(cap), sub(one, part));
}

}  // namespace
}  // namespace tandem::cpu
