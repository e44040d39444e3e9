#include "src/sample/grammar/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "src/text/utf8.h"

namespace tandem {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr CodePointRange kSurrogates{0xD800, 0xDFFF};
constexpr std::array<char32_t, 3> kLastOfLength{0x7F, 0x7FF, 0xFFFF};  // of encodings of 1, 2 and 3 bytes

void add_without_surrogates(std::vector<CodePointRange>& out, char32_t first, char32_t last) {
  if (first < kSurrogates.first) out.push_back({first, std::min(last, kSurrogates.first - 1)});
  if (last > kSurrogates.last) out.push_back({std::max(first, kSurrogates.last + 1), last});
  std::erase_if(out, [](const CodePointRange& range) { return range.first > range.last; });
}

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

std::vector<CodePointRange> normalised(std::span<const CodePointRange> ranges, bool negated) {
  std::vector<CodePointRange> sorted;
  for (const CodePointRange& range : ranges) {
    if (range.first <= range.last && range.first <= kLast) sorted.push_back({range.first, std::min(range.last, kLast)});
  }
  std::ranges::sort(sorted, {}, &CodePointRange::first);
  std::vector<CodePointRange> merged;
  for (const CodePointRange& range : sorted) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  if (negated) {
    std::vector<CodePointRange> others;
    char32_t next = 0;
    for (const CodePointRange& range : merged) {
      if (next < range.first) others.push_back({next, range.first - 1});
      next = range.last + 1;
    }
    if (next <= kLast) others.push_back({next, kLast});
    merged = std::move(others);
  }
  std::vector<CodePointRange> out;
  for (const CodePointRange& range : merged) add_without_surrogates(out, range.first, range.last);
  return out;
}

std::vector<Utf8Ranges> utf8_ranges(std::span<const CodePointRange> ranges) {
  std::vector<Utf8Ranges> out;
  for (const CodePointRange& range : ranges) split(range.first, range.last, out);
  return out;
}

}  // namespace tandem
