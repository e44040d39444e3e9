#include "src/sample/grammar/utf8_ranges.h"

#include <string>

#include "src/text/utf8.h"

namespace tandem {
namespace {

constexpr std::array<char32_t, 3> kLastOfLength{0x7F, 0x7FF, 0xFFFF};  // of encodings of 1, 2 and 3 bytes

// Splits until every range of encodings is a product of byte ranges: as Cox 2010, "Regular Expression Matching in the
// Wild", builds UTF-8 automata.
void split(char32_t first, char32_t last, std::vector<Utf8Ranges>& out) {
  for (const char32_t border : kLastOfLength) {
    if (first <= border && border < last) {
      split(first, border, out);
      return split(border + 1, last, out);
    }
  }
  for (int i = 1; i < 4 && last > kLastOfLength[0]; ++i) {
    const char32_t low = (char32_t{1} << (6 * i)) - 1;  // what the last i bytes hold
    if ((first & ~low) == (last & ~low)) break;
    if ((first & low) != 0) {
      split(first, first | low, out);
      return split((first | low) + 1, last, out);
    }
    if ((last & low) != low) {
      split(first, (last & ~low) - 1, out);
      return split(last & ~low, last, out);
    }
  }
  std::string begin, end;
  append_utf8(begin, first);
  append_utf8(end, last);
  Utf8Ranges ranges;
  ranges.length = static_cast<int>(begin.size());
  for (std::size_t i = 0; i < begin.size(); ++i) {
    ranges.bytes[i] = {static_cast<std::uint8_t>(begin[i]), static_cast<std::uint8_t>(end[i])};
  }
  out.push_back(ranges);
}

}  // namespace

std::vector<Utf8Ranges> utf8_ranges(const CodePoints& normalised) {
  std::vector<Utf8Ranges> out;
  for (const CodePointRange& range : normalised) split(range.first, range.last, out);
  return out;
}

}  // namespace tandem
