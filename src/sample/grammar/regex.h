// Regular expressions as grammar expressions: the regular part of ECMA-262, over code points.
//
//   a  .  [a-z_]  [^0-9]     a character, any but a line end, one of a set, one outside it
//   \d \w \s  \D \W \S       ASCII digits, ASCII word characters, white space, and what is outside them
//   \n \r \t \f \v \0  \xHH \uHHHH \u{H...} \cX  \. \/ \- ...   one character each
//   ab  a|b  (a)  (?:a)  (?<name>a)       sequence, alternatives, groups (all alike: nothing is captured)
//   a? a* a+ a{m} a{m,} a{m,n}            repetition; a lazy one (a*?) matches the same texts
//   ^ $                                   at the two ends of an alternative outside groups
//
// Look-around, back-references, \b, \B, \p, flags and possessive repetition are refused, as is an empty set.
#pragma once
#include <string>
#include <string_view>

#include "src/sample/grammar/grammar.h"

namespace tandem {

enum class RegexMatch {
  whole,  // the text is what the pattern matches; ^ and $ change nothing
  search  // a match may lie anywhere in the text, unless ^ or $ hold it to an end
};

// The texts that `pattern` (UTF-8) matches, as an expression without rules. Throws Error(config) that begins with
// `name` and gives the character, counted from 1. Limits: 10,000 characters, groups 64 deep, repetitions of 10,000
// times, 100,000 characters once repetitions are written out.
Expression regex_expression(std::string_view pattern, RegexMatch match, const std::string& name = "regex");

}  // namespace tandem
