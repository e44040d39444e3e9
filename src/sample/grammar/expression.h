// Small functions that build and measure the expressions of a grammar.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/sample/grammar/code_points.h"
#include "src/sample/grammar/grammar.h"

namespace tandem {

// No count of a repetition may be larger; every front end refuses it by name.
constexpr int kMostRepetitions = 10'000;

namespace expressions {

// Exactly `bytes`; "" matches the empty text.
Expression literal(std::string bytes);
// One code point of `ranges`.
Expression characters(CodePoints ranges);
// What the rule of this index matches.
Expression rule(int index);
// All parts in order; nested sequences are flattened and neighbouring literals joined.
Expression sequence(std::vector<Expression> parts);
// One of the parts; of no parts: no text at all.
Expression choice(std::vector<Expression> parts);
// `body`, `least` to `most` times; most < 0: without limit.
Expression repeat(Expression body, int least, int most);
// `body` or the empty text.
Expression optional(Expression body);

}  // namespace expressions

// Whether `expression` is a choice of nothing, which matches no text at all.
bool is_nothing(const Expression& expression);

// Number of nodes once every repetition is written out, the measure of the limits on size; at most 2^62.
std::int64_t expanded_size(const Expression& expression);

// Number of code points that `expression` (without rules) matches: at least and at most, most < 0 without limit.
struct TextLength {
  std::int64_t least, most;
};
TextLength text_length(const Expression& expression);

// Narrows `expression` (without rules) to the texts of `length`, exactly, when one repetition decides the length; false
// when it does not, and then the expression is as it was or narrowed in part.
bool limit_length(Expression& expression, TextLength length);

}  // namespace tandem
