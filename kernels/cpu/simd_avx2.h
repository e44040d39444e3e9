// Sixteen lanes on AVX2 with FMA and F16C; the names of simd_avx512.h.
//
// vpmaddubsw adds two products of an unsigned and a signed byte into an int16. How many of those fit one int16 depends
// on the codes: 8 of 4 bits, 4 of 5 bits, 2 of 6 bits; then vpmaddwd widens. Byte codes go as |code - 128| times the
// input with that sign, which never overflows.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tandem::cpu {
namespace {

struct F32x16 {
  __m256 a, b;
};
struct I32x16 {
  __m256i a, b;
};
using I16x32 = I32x16;
using U8x64 = I32x16;

#ifdef __SANITIZE_ADDRESS__
constexpr int kBlockRows = 4;  // the same templates; instrumented, those of 8 rows take minutes to compile
#else
constexpr int kBlockRows = 8;  // most rows of a register block
#endif
constexpr int kQueryBlock = 2;                    // most queries of a register block of attention
constexpr int kInterleavedRows = kBlockRows + 1;  // never: too few registers

[[gnu::always_inline]] inline __m256i lanes_below8(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
[[gnu::always_inline]] inline __m256i load256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
[[gnu::always_inline]] inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

// ---- floats
[[gnu::always_inline]] inline F32x16 zeros() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
[[gnu::always_inline]] inline F32x16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
[[gnu::always_inline]] inline F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
[[gnu::always_inline]] inline F32x16 load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, lanes_below8(n)),
          n > 8 ? _mm256_maskload_ps(p + 8, lanes_below8(n - 8)) : _mm256_setzero_ps()};
}
[[gnu::always_inline]] inline void store(float* p, F32x16 v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
[[gnu::always_inline]] inline void store_first(float* p, F32x16 v, int n) {
  _mm256_maskstore_ps(p, lanes_below8(n), v.a);
  if (n > 8) _mm256_maskstore_ps(p + 8, lanes_below8(n - 8), v.b);
}
[[gnu::always_inline]] inline F32x16 add(F32x16 x, F32x16 y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
[[gnu::always_inline]] inline F32x16 sub(F32x16 x, F32x16 y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
[[gnu::always_inline]] inline F32x16 mul(F32x16 x, F32x16 y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
[[gnu::always_inline]] inline F32x16 div(F32x16 x, F32x16 y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
[[gnu::always_inline]] inline F32x16 fma(F32x16 x, F32x16 y, F32x16 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
[[gnu::always_inline]] inline F32x16 fnma(F32x16 x, F32x16 y, F32x16 z) {
  return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
// y where either is NaN.
[[gnu::always_inline]] inline F32x16 max(F32x16 x, F32x16 y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
[[gnu::always_inline]] inline F32x16 min(F32x16 x, F32x16 y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
[[gnu::always_inline]] inline F32x16 abs(F32x16 x) {
  const __m256 sign = _mm256_set1_ps(-0.f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
[[gnu::always_inline]] inline float reduce_add(F32x16 x) {
  const __m256 s = _mm256_add_ps(x.a, x.b);
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}
[[gnu::always_inline]] inline float reduce_max(F32x16 x) {
  const __m256 s = _mm256_max_ps(x.a, x.b);
  __m128 t = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  t = _mm_max_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_max_ss(t, _mm_movehdup_ps(t)));
}
// Lanes outside [low, high) become `fill`.
[[gnu::always_inline]] inline F32x16 within(F32x16 v, int low, int high, float fill) {
  const __m256 f = _mm256_set1_ps(fill);
  const auto keep = [](int l, int h) {
    return _mm256_castsi256_ps(_mm256_andnot_si256(lanes_below8(l), lanes_below8(h)));
  };
  return {_mm256_blendv_ps(f, v.a, keep(low, high)), _mm256_blendv_ps(f, v.b, keep(low - 8, high - 8))};
}
[[gnu::always_inline]] inline F32x16 load_half(const std::uint8_t* p) {
  return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 16))};
}
[[gnu::always_inline]] inline F32x16 load_half_first(const std::uint8_t* p, int n) {
  std::uint8_t all[32] = {};
  std::memcpy(all, p, 2 * static_cast<std::size_t>(n));
  return load_half(all);
}
[[gnu::always_inline]] inline F32x16 splat_half(const std::uint8_t* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return splat(_cvtsh_ss(bits));
}
// 16 signed bytes.
[[gnu::always_inline]] inline F32x16 load_int8(const std::uint8_t* p) {
  const __m128i bytes = load128(p);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
[[gnu::always_inline]] inline F32x16 load_bf16(const std::uint8_t* p) {
  const auto wide = [](const std::uint8_t* q) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(q)), 16));
  };
  return {wide(p), wide(p + 16)};
}
[[gnu::always_inline]] inline void store_half_first(std::uint8_t* p, F32x16 v, int n) {
  __m128i all[2] = {_mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT), _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT)};
  std::memcpy(p, all, 2 * static_cast<std::size_t>(n));
}
[[gnu::always_inline]] inline F32x16 to_float(I32x16 v) { return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)}; }
[[gnu::always_inline]] inline I32x16 to_int(F32x16 v) { return {_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b)}; }
// 2^n for -126 <= n <= 127.
[[gnu::always_inline]] inline F32x16 power_of_two(I32x16 n) {
  const auto one = [](__m256i v) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(127)), 23));
  };
  return {one(n.a), one(n.b)};
}
// Lane i: the sum of the lanes of v[i].
[[gnu::always_inline]] inline F32x16 sum_lanes(const F32x16* v) {
  const auto eight = [](const F32x16* w) {
    __m256 s[8];
    for (int i = 0; i < 8; ++i) s[i] = _mm256_add_ps(w[i].a, w[i].b);
    const __m256 low = _mm256_hadd_ps(_mm256_hadd_ps(s[0], s[1]), _mm256_hadd_ps(s[2], s[3]));
    const __m256 high = _mm256_hadd_ps(_mm256_hadd_ps(s[4], s[5]), _mm256_hadd_ps(s[6], s[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
  };
  return {eight(v), eight(v + 8)};
}

// ---- integers
[[gnu::always_inline]] inline I32x16 zeros_int() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
[[gnu::always_inline]] inline __m256i splat256(const void* p) {
  std::int32_t x;
  std::memcpy(&x, p, sizeof x);
  return _mm256_set1_epi32(x);
}
[[gnu::always_inline]] inline I32x16 splat_int(const void* p) { return {splat256(p), splat256(p)}; }
[[gnu::always_inline]] inline I32x16 load_int(const std::uint8_t* p) { return {load256(p), load256(p + 32)}; }
[[gnu::always_inline]] inline I32x16 xor_int(I32x16 a, I32x16 b) {
  return {_mm256_xor_si256(a.a, b.a), _mm256_xor_si256(a.b, b.b)};
}
[[gnu::always_inline]] inline I32x16 add_int(I32x16 x, I32x16 y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
template <int N>
[[gnu::always_inline]] inline I32x16 shift_left(I32x16 x) {
  return {_mm256_slli_epi32(x.a, N), _mm256_slli_epi32(x.b, N)};
}
template <int N>
[[gnu::always_inline]] inline I32x16 shift_right(I32x16 x) {
  return {_mm256_srai_epi32(x.a, N), _mm256_srai_epi32(x.b, N)};
}
[[gnu::always_inline]] inline std::int32_t reduce_add_int(I32x16 x) {
  const __m256i s = _mm256_add_epi32(x.a, x.b);
  __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
  t = _mm_add_epi32(t, _mm_unpackhi_epi64(t, t));
  return _mm_cvtsi128_si32(_mm_add_epi32(t, _mm_shuffle_epi32(t, 1)));
}
[[gnu::always_inline]] inline void store_bytes(std::int8_t* p, I32x16 v) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.a, v.b), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}

// ---- codes
[[gnu::always_inline]] inline U8x64 load_codes(const std::uint8_t* p) { return {load256(p), load256(p + 32)}; }
[[gnu::always_inline]] inline void store_codes(std::uint8_t* p, U8x64 v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v.a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), v.b);
}
template <typename Op>
[[gnu::always_inline]] inline U8x64 both_halves(U8x64 v, Op op) {
  return {op(v.a), op(v.b)};
}
[[gnu::always_inline]] inline void unpack_nibbles(const std::uint8_t* p, U8x64* w) {
  const __m256i low = _mm256_set1_epi8(15);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const U8x64 v = load_codes(p + 64 * i);
    w[i] = both_halves(v, [&](__m256i x) { return _mm256_and_si256(x, low); });
    w[4 + i] = both_halves(v, [&](__m256i x) { return _mm256_and_si256(_mm256_srli_epi16(x, 4), low); });
  }
}
// 32 bits to 32 bytes of 0 or 16.
[[gnu::always_inline]] inline __m256i spread_bits(const std::uint8_t* bits) {
  const __m256i bytes = _mm256_shuffle_epi8(
      splat256(bits),
      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit), _mm256_set1_epi8(16));
}
[[gnu::always_inline]] inline void add_fifth_bits(const std::uint8_t* bits, U8x64* w) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    w[i] = {_mm256_or_si256(w[i].a, spread_bits(bits + 8 * i)), _mm256_or_si256(w[i].b, spread_bits(bits + 8 * i + 4))};
  }
}
[[gnu::always_inline]] inline void unpack_six_bits(const std::uint8_t* p, U8x64* w) {
  const __m256i top = _mm256_set1_epi8(48);
  unpack_nibbles(p, w);
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const U8x64 bits = load_codes(p + 256 + 64 * h);
    U8x64* out = w + 4 * h;
    const auto join = [&](U8x64 code, __m256i a, __m256i b) {
      return U8x64{_mm256_or_si256(code.a, _mm256_and_si256(a, top)),
                   _mm256_or_si256(code.b, _mm256_and_si256(b, top))};
    };
    out[0] = join(out[0], _mm256_slli_epi16(bits.a, 4), _mm256_slli_epi16(bits.b, 4));
    out[1] = join(out[1], _mm256_slli_epi16(bits.a, 2), _mm256_slli_epi16(bits.b, 2));
    out[2] = join(out[2], bits.a, bits.b);
    out[3] = join(out[3], _mm256_srli_epi16(bits.a, 2), _mm256_srli_epi16(bits.b, 2));
  }
}
[[gnu::always_inline]] inline void load_bytes(const std::uint8_t* p, U8x64* w) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) w[i] = load_codes(p + 64 * i);
}

// The sign trick already subtracts 128 from every code.
[[gnu::always_inline]] inline I32x16 start_of_bytes(const std::int32_t*) { return zeros_int(); }

[[gnu::always_inline]] inline __m256i byte_products(__m256i w, __m256i q) {
  const __m256i code = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
  return _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(q, code));
}
// s += codes . four inputs, a lane its own inputs; pairs must fit int16.
[[gnu::always_inline]] inline I32x16 dot_lanes(I32x16 s, U8x64 w, U8x64 q) {
  const __m256i ones = _mm256_set1_epi16(1);
  return add_int(s, {_mm256_madd_epi16(_mm256_maddubs_epi16(w.a, q.a), ones),
                     _mm256_madd_epi16(_mm256_maddubs_epi16(w.b, q.b), ones)});
}
// s += w[0..N) . q[0..4N)
template <int kBits, int N>
[[gnu::always_inline]] inline I32x16 dot(I32x16 s, const U8x64* w, const std::int8_t* q) {
  constexpr int kAtOnce = kBits == 4 ? 8 : kBits == 5 ? 4 : kBits == 6 ? 2 : 1;
  constexpr int kStep = kAtOnce < N ? kAtOnce : N;
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int i = 0; i < N; i += kStep) {
    __m256i a = _mm256_setzero_si256(), b = a;
#pragma GCC unroll 8
    for (int k = i; k < i + kStep; ++k) {
      const __m256i x = splat256(q + 4 * k);
      if constexpr (kBits == 8) {
        a = byte_products(w[k].a, x);
        b = byte_products(w[k].b, x);
      } else {
        a = _mm256_add_epi16(a, _mm256_maddubs_epi16(w[k].a, x));
        b = _mm256_add_epi16(b, _mm256_maddubs_epi16(w[k].b, x));
      }
    }
    s = add_int(s, {_mm256_madd_epi16(a, ones), _mm256_madd_epi16(b, ones)});
  }
  return s;
}
template <int kBits, int N>
[[gnu::always_inline]] inline void dot_pair(I32x16& even, I32x16& odd, const U8x64* w, const std::int8_t* q) {
  even = dot<kBits, N>(even, w, q);
  odd = dot<kBits, N>(odd, w + N, q + 4 * N);
}
template <int kBits, int N>
[[gnu::always_inline]] inline void dot_pair_short(I32x16& even, I32x16& odd, const U8x64* w, const std::int8_t* q) {
  dot_pair<kBits, N>(even, odd, w, q);
}
[[gnu::always_inline]] inline I16x32 load_unsigned_pairs(const std::uint8_t* p) {
  return {_mm256_cvtepu8_epi16(load128(p)), _mm256_cvtepu8_epi16(load128(p + 16))};
}
[[gnu::always_inline]] inline I16x32 load_signed_pairs(const std::uint8_t* p) {
  return {_mm256_cvtepi8_epi16(load128(p)), _mm256_cvtepi8_epi16(load128(p + 16))};
}
[[gnu::always_inline]] inline I32x16 add_scaled_pair(I32x16 s, I32x16 even, I32x16 odd, I16x32 scales) {
  const auto join = [](__m256i e, __m256i o) { return _mm256_blend_epi16(e, _mm256_slli_epi32(o, 16), 0xaa); };
  return add_int(s,
                 {_mm256_madd_epi16(join(even.a, odd.a), scales.a), _mm256_madd_epi16(join(even.b, odd.b), scales.b)});
}
[[gnu::always_inline]] inline I32x16 add_pair_product(I32x16 s, I16x32 factors, const std::int16_t* two) {
  const __m256i x = splat256(two);
  return add_int(s, {_mm256_madd_epi16(factors.a, x), _mm256_madd_epi16(factors.b, x)});
}
[[gnu::always_inline]] inline void prefetch_l2(const std::uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}
[[gnu::always_inline]] inline void prefetch_l1(const std::uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace
}  // namespace tandem::cpu
