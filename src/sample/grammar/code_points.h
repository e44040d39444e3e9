// Sets of code points as sorted, disjoint ranges. Surrogates belong to no set: they are no text.
#pragma once
#include <vector>

#include "src/sample/grammar/grammar.h"

namespace tandem {

using CodePoints = std::vector<CodePointRange>;

constexpr char32_t kLastCodePoint = 0x10FFFF;

// `ranges` sorted, joined where they touch, and without surrogates and what lies above U+10FFFF.
CodePoints normalised(const CodePoints& ranges);

// Every code point that is not in `ranges`. complement({}) is every code point.
CodePoints complement(const CodePoints& ranges);

// What lies in both.
CodePoints intersection(const CodePoints& left, const CodePoints& right);

// What lies in `left` and not in `right`.
CodePoints difference(const CodePoints& left, const CodePoints& right);

// Whether `character` lies in one of the `ranges`, sorted or not.
bool contains(const CodePoints& ranges, char32_t character);

}  // namespace tandem
