// Logits as integers: the largest key is the largest logit and, among equals, the one of the lowest id. So maxima,
// selection and sorting have one answer, whatever the order in which a device combines them.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/platform.h"
#include "kernels/cuda/row_count.h"
#include "src/base/types.h"

namespace tandem::TANDEM_GPU {

// The logit's place in the order of floats above, the complement of the id below. 0, less than any other key, for NaN
// and -inf, which are never chosen. Both zeros are equal.
constexpr std::uint64_t rank_key(float logit, TokenId token) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(logit == 0 ? 0.f : logit);
  if (logit != logit || bits == 0xff800000u) return 0;
  const std::uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return std::uint64_t{ordered} << 32 | static_cast<std::uint32_t>(~token);
}

constexpr TokenId token_of_key(std::uint64_t key) {
  return key == 0 ? -1 : static_cast<TokenId>(~static_cast<std::uint32_t>(key));
}

// The logit of a key (+0 for -0); -inf of 0.
constexpr float logit_of_key(std::uint64_t key) {
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  if (key == 0) return std::bit_cast<float>(0xff800000u);
  return std::bit_cast<float>(ordered >> 31 != 0 ? ordered & 0x7fffffffu : ~ordered);
}

// Rows of logits on the device.
struct LogitRows {
  const float* data;
  int rows, vocabulary;
  std::ptrdiff_t stride;                  // floats between rows
  const std::uint32_t* usable = nullptr;  // bit i % 32 of word i / 32: token i may be chosen; null = all may
  RowCount count{};

  constexpr bool may_choose(TokenId token) const { return usable == nullptr || (usable[token / 32] >> token % 32 & 1); }
  // Of one entry; 0 where the token may not be chosen.
  constexpr std::uint64_t key(int row, TokenId token) const {
    return may_choose(token) ? rank_key(data[row * stride + token], token) : 0;
  }
};

}  // namespace tandem::TANDEM_GPU
