#include "src/sample/grammar/unicode_escapes.h"

#include <algorithm>

#include "src/sample/grammar/expression.h"

namespace tandem {
namespace {

namespace ex = expressions;

// One hexadecimal digit of `low`..`high`.
Expression hex_digit(unsigned low, unsigned high) {
  CodePoints ranges;
  if (low < 10) ranges.push_back({U'0' + low, U'0' + std::min(high, 9u)});
  if (high >= 10) {
    const unsigned first = std::max(low, 10u) - 10, last = high - 10;
    ranges.push_back({U'A' + first, U'A' + last});
    ranges.push_back({U'a' + first, U'a' + last});
  }
  return ex::characters(std::move(ranges));
}

// `digits` hexadecimal digits whose value lies in `low`..`high`.
Expression hex_digits(unsigned low, unsigned high, int digits) {
  if (digits == 0) return ex::literal("");
  const int shift = 4 * (digits - 1);
  const unsigned below = (1u << shift) - 1;  // the largest value of the digits that follow
  unsigned first = low >> shift, last = high >> shift;
  std::vector<Expression> parts;
  const auto add = [&](unsigned digit_low, unsigned digit_high, unsigned rest_low, unsigned rest_high) {
    parts.push_back(ex::sequence({hex_digit(digit_low, digit_high), hex_digits(rest_low, rest_high, digits - 1)}));
  };
  if (first == last) {
    add(first, last, low & below, high & below);
    return ex::choice(std::move(parts));
  }
  if ((low & below) != 0) add(first, first, low & below, below), ++first;
  const bool cut_high = (high & below) != below;
  if (cut_high) --last;
  if (first <= last) add(first, last, 0, below);
  if (cut_high) add(last + 1, last + 1, 0, high & below);
  return ex::choice(std::move(parts));
}

Expression escape(unsigned low, unsigned high) { return ex::sequence({ex::literal("\\u"), hex_digits(low, high, 4)}); }

// Two escapes for the code points `low`..`high` above U+FFFF.
void add_pairs(std::vector<Expression>& spellings, char32_t low, char32_t high) {
  const auto lead = [](char32_t character) { return 0xD800u + ((character - 0x10000) >> 10); };
  const auto trail = [](char32_t character) { return 0xDC00u + ((character - 0x10000) & 0x3FF); };
  const auto add = [&](unsigned lead_low, unsigned lead_high, unsigned trail_low, unsigned trail_high) {
    if (lead_low <= lead_high) {
      spellings.push_back(ex::sequence({escape(lead_low, lead_high), escape(trail_low, trail_high)}));
    }
  };
  if (lead(low) == lead(high)) {
    add(lead(low), lead(high), trail(low), trail(high));
    return;
  }
  const bool cut_low = trail(low) != 0xDC00, cut_high = trail(high) != 0xDFFF;
  if (cut_low) add(lead(low), lead(low), trail(low), 0xDFFF);
  add(lead(low) + (cut_low ? 1 : 0), lead(high) - (cut_high ? 1 : 0), 0xDC00, 0xDFFF);
  if (cut_high) add(lead(high), lead(high), 0xDC00, trail(high));
}

}  // namespace

Expression unicode_escapes(const CodePoints& set) {
  std::vector<Expression> spellings;
  for (const CodePointRange& range : set) {
    if (range.first <= 0xFFFF) spellings.push_back(escape(range.first, std::min<char32_t>(range.last, 0xFFFF)));
    if (range.last > 0xFFFF) add_pairs(spellings, std::max<char32_t>(range.first, 0x10000), range.last);
  }
  return ex::choice(std::move(spellings));
}

}  // namespace tandem
