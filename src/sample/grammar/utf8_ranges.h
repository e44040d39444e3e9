// Sets of code points as ranges of UTF-8 bytes.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "src/sample/grammar/code_points.h"

namespace tandem {

struct ByteRange {
  std::uint8_t first, last;  // both included
  bool operator==(const ByteRange&) const = default;
};

// One range for each byte of the encodings: their product is what it stands for.
struct Utf8Ranges {
  std::array<ByteRange, 4> bytes{};
  int length = 0;
  std::span<const ByteRange> span() const { return std::span(bytes).first(static_cast<std::size_t>(length)); }
};

// The encodings of these code points and of nothing else.
std::vector<Utf8Ranges> utf8_ranges(const CodePoints& normalised);

}  // namespace tandem
