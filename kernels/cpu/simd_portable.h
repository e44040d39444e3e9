// Sixteen lanes in plain C++; the names of simd_avx512.h. Simple loops that a compiler may vectorise with what every
// machine has.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "src/base/half.h"

namespace tandem::cpu {
namespace {

struct alignas(16) F32x16 {
  float v[16];
};
struct alignas(16) I32x16 {
  std::int32_t v[16];
};
struct alignas(16) I16x32 {
  std::int16_t v[32];
};
struct alignas(16) U8x64 {
  std::uint8_t v[64];
};

constexpr int kBlockRows = 2;                     // most rows of a register block
constexpr int kQueryBlock = 6;                    // most queries of a register block of attention
constexpr int kInterleavedRows = kBlockRows + 1;  // never: too few registers

template <typename V, typename Op>
[[gnu::always_inline]] inline V each(Op op) {
  V r;
  for (int i = 0; i < 16; ++i) r.v[i] = op(i);
  return r;
}

// ---- floats
inline F32x16 splat(float x) {
  return each<F32x16>([&](int) { return x; });
}
inline F32x16 zeros() { return splat(0); }
inline F32x16 load(const float* p) {
  F32x16 r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline F32x16 load_first(const float* p, int n) {
  F32x16 r = zeros();
  std::memcpy(r.v, p, sizeof(float) * static_cast<std::size_t>(n < 16 ? n : 16));
  return r;
}
inline void store(float* p, const F32x16& v) { std::memcpy(p, v.v, sizeof v.v); }
inline void store_first(float* p, const F32x16& v, int n) {
  std::memcpy(p, v.v, sizeof(float) * static_cast<std::size_t>(n < 16 ? n : 16));
}
inline F32x16 add(const F32x16& a, const F32x16& b) {
  return each<F32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline F32x16 sub(const F32x16& a, const F32x16& b) {
  return each<F32x16>([&](int i) { return a.v[i] - b.v[i]; });
}
inline F32x16 mul(const F32x16& a, const F32x16& b) {
  return each<F32x16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline F32x16 div(const F32x16& a, const F32x16& b) {
  return each<F32x16>([&](int i) { return a.v[i] / b.v[i]; });
}
inline F32x16 fma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each<F32x16>([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
inline F32x16 fnma(const F32x16& a, const F32x16& b, const F32x16& c) {
  return each<F32x16>([&](int i) { return c.v[i] - a.v[i] * b.v[i]; });
}
// b where either is NaN.
inline F32x16 max(const F32x16& a, const F32x16& b) {
  return each<F32x16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32x16 min(const F32x16& a, const F32x16& b) {
  return each<F32x16>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32x16 abs(const F32x16& a) {
  return each<F32x16>([&](int i) { return std::fabs(a.v[i]); });
}
template <typename V, typename Op>
[[gnu::always_inline]] inline auto halve(V x, Op op) {
  for (int width = 8; width; width /= 2) {
    for (int i = 0; i < width; ++i) x.v[i] = op(x.v[i], x.v[i + width]);
  }
  return x.v[0];
}
inline float reduce_add(const F32x16& a) {
  return halve(a, [](float x, float y) { return x + y; });
}
inline float reduce_max(const F32x16& a) {
  return halve(a, [](float x, float y) { return x > y ? x : y; });
}
// Lanes outside [low, high) become `fill`.
inline F32x16 within(const F32x16& v, int low, int high, float fill) {
  return each<F32x16>([&](int i) { return i >= low && i < high ? v.v[i] : fill; });
}
inline F32x16 load_half_first(const std::uint8_t* p, int n) {
  std::uint16_t bits[16] = {};
  std::memcpy(bits, p, 2 * static_cast<std::size_t>(n < 16 ? n : 16));
  return each<F32x16>([&](int i) { return half_to_float(bits[i]); });
}
inline F32x16 load_half(const std::uint8_t* p) { return load_half_first(p, 16); }
inline F32x16 splat_half(const std::uint8_t* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return splat(half_to_float(bits));
}
// 16 signed bytes.
inline F32x16 load_int8(const std::uint8_t* p) {
  return each<F32x16>([&](int i) { return static_cast<float>(static_cast<std::int8_t>(p[i])); });
}
inline F32x16 load_bf16(const std::uint8_t* p) {
  std::uint16_t bits[16];
  std::memcpy(bits, p, sizeof bits);
  return each<F32x16>([&](int i) { return bf16_to_float(bits[i]); });
}
inline void store_half_first(std::uint8_t* p, const F32x16& v, int n) {
  std::uint16_t bits[16];
  for (int i = 0; i < 16; ++i) bits[i] = float_to_half(v.v[i]);
  std::memcpy(p, bits, 2 * static_cast<std::size_t>(n < 16 ? n : 16));
}
inline F32x16 to_float(const I32x16& v) {
  return each<F32x16>([&](int i) { return static_cast<float>(v.v[i]); });
}
// Nearest even for |v| < 2^22: adding 1.5 x 2^23 leaves the integer in the low bits.
inline I32x16 to_int(const F32x16& v) {
  return each<I32x16>([&](int i) { return std::bit_cast<std::int32_t>(v.v[i] + 12582912.f) - 0x4b400000; });
}
// 2^n for -126 <= n <= 127.
inline F32x16 power_of_two(const I32x16& n) {
  return each<F32x16>([&](int i) { return std::bit_cast<float>((static_cast<std::uint32_t>(n.v[i]) + 127) << 23); });
}
// Lane i: the sum of the lanes of v[i].
inline F32x16 sum_lanes(const F32x16* v) {
  return each<F32x16>([&](int i) { return reduce_add(v[i]); });
}

// ---- integers
inline I32x16 zeros_int() { return {}; }
inline I32x16 splat_int(const void* p) {
  std::int32_t x;
  std::memcpy(&x, p, sizeof x);
  return each<I32x16>([&](int) { return x; });
}
inline I32x16 load_int(const std::uint8_t* p) {
  I32x16 r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline I32x16 xor_int(const I32x16& a, const I32x16& b) {
  return each<I32x16>([&](int i) { return a.v[i] ^ b.v[i]; });
}
inline I32x16 add_int(const I32x16& a, const I32x16& b) {
  return each<I32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
template <int N>
inline I32x16 shift_left(const I32x16& a) {
  return each<I32x16>([&](int i) { return a.v[i] * (1 << N); });
}
template <int N>
inline I32x16 shift_right(const I32x16& a) {
  return each<I32x16>([&](int i) { return a.v[i] >> N; });
}
inline std::int32_t reduce_add_int(const I32x16& a) {
  return halve(a, [](std::int32_t x, std::int32_t y) { return x + y; });
}
inline void store_bytes(std::int8_t* p, const I32x16& v) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(v.v[i]);
}

// ---- codes
inline U8x64 load_codes(const std::uint8_t* p) {
  U8x64 r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline void store_codes(std::uint8_t* p, const U8x64& v) { std::memcpy(p, v.v, sizeof v.v); }
inline void unpack_nibbles(const std::uint8_t* p, U8x64* w) {
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 64; ++k) {
      w[i].v[k] = p[64 * i + k] & 15;
      w[4 + i].v[k] = p[64 * i + k] >> 4;
    }
  }
}
inline void add_fifth_bits(const std::uint8_t* bits, U8x64* w) {
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k < 64; ++k) w[i].v[k] |= static_cast<std::uint8_t>((bits[8 * i + k / 8] >> (k % 8) & 1) << 4);
  }
}
inline void unpack_six_bits(const std::uint8_t* p, U8x64* w) {
  unpack_nibbles(p, w);
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k < 64; ++k) {
      w[i].v[k] |= static_cast<std::uint8_t>((p[256 + 64 * (i / 4) + k] >> (2 * (i % 4)) & 3) << 4);
    }
  }
}
inline void load_bytes(const std::uint8_t* p, U8x64* w) {
  for (int i = 0; i < 8; ++i) w[i] = load_codes(p + 64 * i);
}
// Where the sums of byte codes (offset 128) start.
inline I32x16 start_of_bytes(const std::int32_t* minus_128_sum) { return splat_int(minus_128_sum); }

template <int N>
inline void dot(I32x16& s, const U8x64* w, const std::int8_t* q) {
  for (int i = 0; i < N; ++i) {
    for (int o = 0; o < 16; ++o) {
      const std::uint8_t* c = w[i].v + 4 * o;
      s.v[o] += c[0] * q[4 * i] + c[1] * q[4 * i + 1] + c[2] * q[4 * i + 2] + c[3] * q[4 * i + 3];
    }
  }
}
template <int kBits, int N>
inline void dot_pair(I32x16& even, I32x16& odd, const U8x64* w, const std::int8_t* q) {
  dot<N>(even, w, q);
  dot<N>(odd, w + N, q + 4 * N);
}
inline I32x16 dot_lanes(const I32x16& s, const U8x64& w, const U8x64& q) {
  return each<I32x16>([&](int i) {
    std::int32_t sum = s.v[i];
    for (int k = 4 * i; k < 4 * i + 4; ++k) sum += w.v[k] * static_cast<std::int8_t>(q.v[k]);
    return sum;
  });
}
template <int kBits, int N>
inline void dot_pair_short(I32x16& even, I32x16& odd, const U8x64* w, const std::int8_t* q) {
  dot_pair<kBits, N>(even, odd, w, q);
}
inline I16x32 load_unsigned_pairs(const std::uint8_t* p) {
  I16x32 r;
  for (int i = 0; i < 32; ++i) r.v[i] = p[i];
  return r;
}
inline I16x32 load_signed_pairs(const std::uint8_t* p) {
  I16x32 r;
  for (int i = 0; i < 32; ++i) r.v[i] = static_cast<std::int8_t>(p[i]);
  return r;
}
inline I32x16 add_scaled_pair(const I32x16& s, const I32x16& even, const I32x16& odd, const I16x32& scales) {
  return each<I32x16>([&](int i) { return s.v[i] + even.v[i] * scales.v[2 * i] + odd.v[i] * scales.v[2 * i + 1]; });
}
inline I32x16 add_pair_product(const I32x16& s, const I16x32& factors, const std::int16_t* two) {
  return each<I32x16>([&](int i) { return s.v[i] + factors.v[2 * i] * two[0] + factors.v[2 * i + 1] * two[1]; });
}
inline void prefetch_l2(const std::uint8_t*) {}
inline void prefetch_l1(const std::uint8_t*) {}

}  // namespace
}  // namespace tandem::cpu
