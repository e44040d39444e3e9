// What the machine can do at best: plain reading and plain multiplying, with this instruction set's widest loads and
// dots.
#pragma once
#include "kernels/cpu/kernel_table.h"

namespace tandem::cpu {
namespace {

// Reads whole groups of four lines, in four streams of lanes so that none waits for another. Returns the words' XOR.
std::uint32_t read_lines(const std::uint8_t* data, std::size_t bytes) {
  I32x16 seen[4] = {zeros_int(), zeros_int(), zeros_int(), zeros_int()};
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) seen[k] = xor_int(seen[k], load_int(data + i + 64 * k));
  }
  std::uint32_t words[64], all = 0;
  std::memcpy(words, seen, sizeof words);
  for (const std::uint32_t word : words) all ^= word;
  return all;
}

// Sixteen dots a round, enough chains to hide their latency. The compiler must not see that all factors are one and all
// chains equal: it would compute one of them.
std::int32_t multiply_loop(int rounds) {
  alignas(64) std::uint8_t ones[8][64];
  for (auto& row : ones) {
    for (std::uint8_t& byte : row) byte = 1;
  }
  std::int32_t starts[16] = {};
  asm volatile("" : "+m"(starts));
  I32x16 sums[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) sums[i] = splat_int(starts + i);
  for (int round = 0; round < rounds; ++round) {
    asm volatile("" : "+m"(ones));
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const U8x64 w = load_codes(ones[k]);
#pragma GCC unroll 4
      for (int l = 0; l < 4; ++l) sums[4 * k + l] = dot_lanes(sums[4 * k + l], w, load_codes(ones[4 + l]));
    }
  }
#pragma GCC unroll 16
  for (int i = 1; i < 16; ++i) sums[0] = add_int(sums[0], sums[i]);
  return reduce_add_int(sums[0]);
}

}  // namespace
}  // namespace tandem::cpu
