// Names used everywhere.
#pragma once
#include <cstdint>

namespace tandem {

using TokenId = std::int32_t;   // index into a vocabulary; never negative once validated
using Position = std::int32_t;  // 0-based place of a token in its sequence

inline constexpr int kMaxTreeNodes = 64;  // so that an ancestor set is one 64-bit mask

}  // namespace tandem
