// Grammars in GBNF, the notation of llama.cpp.
#pragma once
#include <string_view>

#include "src/sample/grammar/grammar.h"

namespace tandem {

// Reads rules `name ::= ...` with literals "text", classes [a-z] and [^a-z], `.` for any character, names of rules,
// groups ( ), alternatives |, repeats * + ? {m} {m,} {m,n} and comments from # to the end of a line; the answer matches
// the rule `root`. A rule goes on over lines until the next one begins. Escapes, in literals and classes, each a code
// point: \n \r \t \xHH \uHHHH \UHHHHHHHH, and a backslash before one of \"[]-^ for itself. Throws Error(config) naming
// `name`, line and column for anything else, for rules that are missing, given twice or left recursive, for groups
// within each other deeper than kDeepestExpression, counts above kMostRepetitions and more than kMostRules rules.
Grammar parse_gbnf(std::string_view text, std::string_view name);

}  // namespace tandem
