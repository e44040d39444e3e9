// Sixteen lanes on AVX-512 (F, BW, VL, DQ, VNNI). The three simd_*.h define the same names, each file for one
// instruction set; everything sits in an anonymous namespace, so nothing compiled with special flags is visible outside
// its file.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tandem::cpu {
namespace {

using F32x16 = __m512;
using I32x16 = __m512i;
using I16x32 = __m512i;
using U8x64 = __m512i;

#ifdef __SANITIZE_ADDRESS__
constexpr int kBlockRows = 4;  // the same templates; instrumented, those of 8 rows take minutes to compile
#else
constexpr int kBlockRows = 8;  // most rows of a register block
#endif
constexpr int kQueryBlock = 6;  // most queries of a register block of attention

[[gnu::always_inline]] inline __mmask16 lanes_below(int n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// ---- floats
[[gnu::always_inline]] inline F32x16 zeros() { return _mm512_setzero_ps(); }
[[gnu::always_inline]] inline F32x16 splat(float x) { return _mm512_set1_ps(x); }
[[gnu::always_inline]] inline F32x16 load(const float* p) { return _mm512_loadu_ps(p); }
[[gnu::always_inline]] inline F32x16 load_first(const float* p, int n) {
  return _mm512_maskz_loadu_ps(lanes_below(n), p);
}
[[gnu::always_inline]] inline void store(float* p, F32x16 v) { _mm512_storeu_ps(p, v); }
[[gnu::always_inline]] inline void store_first(float* p, F32x16 v, int n) {
  _mm512_mask_storeu_ps(p, lanes_below(n), v);
}
[[gnu::always_inline]] inline F32x16 add(F32x16 a, F32x16 b) { return _mm512_add_ps(a, b); }
[[gnu::always_inline]] inline F32x16 sub(F32x16 a, F32x16 b) { return _mm512_sub_ps(a, b); }
[[gnu::always_inline]] inline F32x16 mul(F32x16 a, F32x16 b) { return _mm512_mul_ps(a, b); }
[[gnu::always_inline]] inline F32x16 div(F32x16 a, F32x16 b) { return _mm512_div_ps(a, b); }
[[gnu::always_inline]] inline F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmadd_ps(a, b, c); }
[[gnu::always_inline]] inline F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fnmadd_ps(a, b, c); }
// b where either is NaN.
[[gnu::always_inline]] inline F32x16 max(F32x16 a, F32x16 b) { return _mm512_max_ps(a, b); }
[[gnu::always_inline]] inline F32x16 min(F32x16 a, F32x16 b) { return _mm512_min_ps(a, b); }
[[gnu::always_inline]] inline F32x16 abs(F32x16 a) { return _mm512_abs_ps(a); }
[[gnu::always_inline]] inline float reduce_add(F32x16 a) { return _mm512_reduce_add_ps(a); }
[[gnu::always_inline]] inline float reduce_max(F32x16 a) { return _mm512_reduce_max_ps(a); }
// Lanes outside [low, high) become `fill`.
[[gnu::always_inline]] inline F32x16 within(F32x16 v, int low, int high, float fill) {
  const __mmask16 keep = static_cast<__mmask16>(lanes_below(high) & ~lanes_below(low));
  return _mm512_mask_blend_ps(keep, _mm512_set1_ps(fill), v);
}
[[gnu::always_inline]] inline F32x16 load_half(const std::uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
[[gnu::always_inline]] inline F32x16 load_half_first(const std::uint8_t* p, int n) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes_below(n), p));
}
[[gnu::always_inline]] inline F32x16 splat_half(const std::uint8_t* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return _mm512_set1_ps(_cvtsh_ss(bits));
}
// 16 signed bytes.
[[gnu::always_inline]] inline F32x16 load_int8(const std::uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
[[gnu::always_inline]] inline F32x16 load_bf16(const std::uint8_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
[[gnu::always_inline]] inline void store_half_first(std::uint8_t* p, F32x16 v, int n) {
  _mm256_mask_storeu_epi16(p, lanes_below(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
[[gnu::always_inline]] inline F32x16 to_float(I32x16 v) { return _mm512_cvtepi32_ps(v); }
[[gnu::always_inline]] inline I32x16 to_int(F32x16 v) { return _mm512_cvtps_epi32(v); }  // nearest even
// 2^n for -126 <= n <= 127.
[[gnu::always_inline]] inline F32x16 power_of_two(I32x16 n) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
}
// Lane i: the sum of the lanes of v[i]. Pairs of vectors fold into one, so each level halves the additions.
[[gnu::always_inline]] inline F32x16 sum_lanes(const F32x16* v) {
  const auto halves = [](F32x16 a, F32x16 b) {  // 8 lanes of a, 8 of b
    return add(_mm512_mask_blend_ps(0xff00, a, b), _mm512_shuffle_f32x4(a, b, 0x4e));
  };
  F32x16 t[4];  // of v[i], v[4 + i], v[8 + i], v[12 + i], four lanes each
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const F32x16 a = halves(v[i], v[4 + i]), b = halves(v[8 + i], v[12 + i]);
    t[i] = add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  const auto pairs = [](F32x16 a, F32x16 b) {
    return add(_mm512_mask_blend_ps(0xcccc, a, b), _mm512_shuffle_ps(a, b, 0x4e));
  };
  const F32x16 a = pairs(t[0], t[1]), b = pairs(t[2], t[3]);
  return add(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

// ---- integers
[[gnu::always_inline]] inline I32x16 zeros_int() { return _mm512_setzero_si512(); }
[[gnu::always_inline]] inline I32x16 splat_int(const void* p) {
  std::int32_t x;
  std::memcpy(&x, p, sizeof x);
  return _mm512_set1_epi32(x);
}
[[gnu::always_inline]] inline I32x16 load_int(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
[[gnu::always_inline]] inline I32x16 xor_int(I32x16 a, I32x16 b) { return _mm512_xor_si512(a, b); }
[[gnu::always_inline]] inline I32x16 add_int(I32x16 a, I32x16 b) { return _mm512_add_epi32(a, b); }
template <int N>
[[gnu::always_inline]] inline I32x16 shift_left(I32x16 a) {
  return _mm512_slli_epi32(a, N);
}
template <int N>
[[gnu::always_inline]] inline I32x16 shift_right(I32x16 a) {
  return _mm512_srai_epi32(a, N);
}
[[gnu::always_inline]] inline std::int32_t reduce_add_int(I32x16 a) { return _mm512_reduce_add_epi32(a); }
[[gnu::always_inline]] inline void store_bytes(std::int8_t* p, I32x16 v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
}

// ---- codes
[[gnu::always_inline]] inline U8x64 load_codes(const std::uint8_t* p) { return _mm512_load_si512(p); }
[[gnu::always_inline]] inline void store_codes(std::uint8_t* p, U8x64 v) { _mm512_store_si512(p, v); }
// 256 bytes of nibbles to eight vectors of codes.
[[gnu::always_inline]] inline void unpack_nibbles(const std::uint8_t* p, U8x64* w) {
  const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i v = load_codes(p + 64 * i);
    w[i] = _mm512_and_si512(v, low);
    w[4 + i] = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);
  }
}
// Adds 16 to the codes whose bit is set; 64 bytes of bits.
[[gnu::always_inline]] inline void add_fifth_bits(const std::uint8_t* bits, U8x64* w) {
  const __m512i sixteen = _mm512_set1_epi8(16);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    std::uint64_t mask;
    std::memcpy(&mask, bits + 8 * i, sizeof mask);
    w[i] = _mm512_mask_add_epi8(w[i], _cvtu64_mask64(mask), w[i], sixteen);
  }
}
// 256 bytes of nibbles and 128 of top bits to eight vectors of codes.
[[gnu::always_inline]] inline void unpack_six_bits(const std::uint8_t* p, U8x64* w) {
  const __m512i low = _mm512_set1_epi8(15), top = _mm512_set1_epi8(48);
  const __m512i first = load_codes(p + 256), second = load_codes(p + 320);
  const __m512i tops[8] = {
      _mm512_slli_epi16(first, 4),  _mm512_slli_epi16(first, 2),  first,  _mm512_srli_epi16(first, 2),
      _mm512_slli_epi16(second, 4), _mm512_slli_epi16(second, 2), second, _mm512_srli_epi16(second, 2)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // (nibble & 15) | (top & 48)
    const __m512i v = load_codes(p + 64 * i);
    w[i] = _mm512_ternarylogic_epi32(v, low, _mm512_and_si512(tops[i], top), 0xEA);
    w[4 + i] = _mm512_ternarylogic_epi32(_mm512_srli_epi16(v, 4), low, _mm512_and_si512(tops[4 + i], top), 0xEA);
  }
}
// 512 bytes of codes to eight vectors.
[[gnu::always_inline]] inline void load_bytes(const std::uint8_t* p, U8x64* w) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) w[i] = load_codes(p + 64 * i);
}

// s += codes . four inputs. The instruction itself broadcasts them; g++ 12 would spend a second instruction.
[[gnu::always_inline]] inline I32x16 dot4(I32x16 s, U8x64 w, const std::int8_t* q) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(w), "m"(*reinterpret_cast<const std::int32_t*>(q)));
  return s;
}
// s += codes . four inputs, a lane its own inputs.
[[gnu::always_inline]] inline I32x16 dot_lanes(I32x16 s, U8x64 w, U8x64 q) { return _mm512_dpbusd_epi32(s, w, q); }
// Where the sums of byte codes (offset 128) start.
[[gnu::always_inline]] inline I32x16 start_of_bytes(const std::int32_t* minus_128_sum) {
  return splat_int(minus_128_sum);
}
// even += w[0..N) . q[0..4N), odd += w[N..2N) . q[4N..8N); codes of kBits bits.
template <int kBits, int N>
[[gnu::always_inline]] inline void dot_pair(I32x16& even, I32x16& odd, const U8x64* w, const std::int8_t* q) {
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
    even = dot4(even, w[i], q + 4 * i);
    odd = dot4(odd, w[N + i], q + 4 * N + 4 * i);
  }
}
// The same in four short chains: the latency of two long ones shows with few rows.
template <int kBits, int N>
[[gnu::always_inline]] inline void dot_pair_short(I32x16& even, I32x16& odd, const U8x64* w, const std::int8_t* q) {
  I32x16 even2 = zeros_int(), odd2 = zeros_int();
#pragma GCC unroll 4
  for (int i = 0; i < N / 2; ++i) {
    even = dot4(even, w[i], q + 4 * i);
    even2 = dot4(even2, w[N / 2 + i], q + 2 * N + 4 * i);
    odd = dot4(odd, w[N + i], q + 4 * N + 4 * i);
    odd2 = dot4(odd2, w[N + N / 2 + i], q + 6 * N + 4 * i);
  }
  even = add_int(even, even2);
  odd = add_int(odd, odd2);
}
// The same for M rows, input by input: 2 M chains side by side instead of two at a time (Q4_K on Sapphire Rapids: 266
// instead of 246 GMAC/s at 16 rows, 286 instead of 254 at 128). Codes come from memory, so that sums have the
// registers. `q(m)` points to the inputs of row m.
constexpr int kInterleavedRows = 4;  // from so many rows on
template <int kBits, int N, int M, typename Inputs>
[[gnu::always_inline]] inline void dot_rows(I32x16* even, I32x16* odd, const std::uint8_t* codes, const Inputs& q) {
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
    const U8x64 first = load_codes(codes + 64 * i), second = load_codes(codes + 64 * (N + i));
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      even[m] = dot4(even[m], first, q(m) + 4 * i);
      odd[m] = dot4(odd[m], second, q(m) + 4 * N + 4 * i);
    }
  }
}
// 32 bytes to int16.
[[gnu::always_inline]] inline I16x32 load_unsigned_pairs(const std::uint8_t* p) {
  return _mm512_cvtepu8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
}
[[gnu::always_inline]] inline I16x32 load_signed_pairs(const std::uint8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
}
// s + even * scales of even + odd * scales of odd, where even and odd fit int16: one masked byte shuffle, one multiply.
[[gnu::always_inline]] inline I32x16 add_scaled_pair(I32x16 s, I32x16 even, I32x16 odd, I16x32 scales) {
  const __m512i places = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 1, 0, 0, 4, 5, 0, 0, 8, 9, 0, 0, 12, 13));
  const __m512i both = _mm512_mask_shuffle_epi8(even, 0xCCCCCCCCCCCCCCCCull, odd, places);
  return _mm512_dpwssd_epi32(s, both, scales);
}
// s + a pair of factors (int16) times the pair at `two`, the same for all outputs.
[[gnu::always_inline]] inline I32x16 add_pair_product(I32x16 s, I16x32 factors, const std::int16_t* two) {
  return _mm512_dpwssd_epi32(s, factors, splat_int(two));
}

[[gnu::always_inline]] inline void prefetch_l2(const std::uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}
[[gnu::always_inline]] inline void prefetch_l1(const std::uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace
}  // namespace tandem::cpu
