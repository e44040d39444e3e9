// What must hold of a grammar before it can be followed from left to right.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/sample/grammar/grammar.h"

namespace tandem {

inline constexpr int kMostRules = 20000;        // of one grammar
inline constexpr int kDeepestExpression = 400;  // parts within parts

// The rules of one cycle in which each begins with the next, directly or behind parts that may be empty, and the last
// with the first; nothing when no rule of the grammar is left recursive.
std::optional<std::vector<int>> find_left_recursion(const Grammar& grammar);

// Throws Error(config), its message beginning with `where`, for a grammar without rules, numbers of rules that do not
// exist, repeats that end before they begin, more than kMostRules rules, expressions deeper than kDeepestExpression,
// and left recursion, which it names.
void require_sound(const Grammar& grammar, const std::string& where);

}  // namespace tandem
