#include "src/sample/grammar/code_points.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr CodePointRange kBeforeSurrogates{0, 0xD7FF}, kAfterSurrogates{0xE000, kLastCodePoint};

}  // namespace

CodePoints normalised(const CodePoints& ranges) {
  CodePoints parts;
  for (const CodePointRange& range : ranges) {
    for (const CodePointRange& limit : {kBeforeSurrogates, kAfterSurrogates}) {
      const CodePointRange part{std::max(range.first, limit.first), std::min(range.last, limit.last)};
      if (part.first <= part.last) parts.push_back(part);
    }
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  CodePoints joined;
  for (const CodePointRange& part : parts) {
    if (!joined.empty() && part.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, part.last);
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

CodePoints complement(const CodePoints& ranges) {
  CodePoints outside;
  char32_t next = 0;
  for (const CodePointRange& range : normalised(ranges)) {
    if (range.first > next) outside.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) outside.push_back({next, kLastCodePoint});
  return normalised(outside);
}

CodePoints intersection(const CodePoints& left, const CodePoints& right) {
  CodePoints both;
  for (const CodePointRange& a : left) {
    for (const CodePointRange& b : right) {
      const CodePointRange part{std::max(a.first, b.first), std::min(a.last, b.last)};
      if (part.first <= part.last) both.push_back(part);
    }
  }
  return normalised(both);
}

CodePoints difference(const CodePoints& left, const CodePoints& right) { return intersection(left, complement(right)); }

bool contains(const CodePoints& ranges, char32_t character) {
  return std::any_of(ranges.begin(), ranges.end(), [character](const CodePointRange& range) {
    return range.first <= character && character <= range.last;
  });
}

}  // namespace tandem
