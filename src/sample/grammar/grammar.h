// A context-free grammar over Unicode text, as every constraint compiles to: what GBNF, regex, choices and JSON schema
// share.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct CodePointRange {
  char32_t first, last;  // both included
};

// One expression. Repeats and groups nest as `parts`.
struct Expression {
  enum class Kind : std::uint8_t {
    literal,     // exactly `bytes` (UTF-8; "" matches the empty text)
    characters,  // one code point within `ranges` (outside them when `negated`)
    rule,        // what rules[rule] matches
    sequence,    // all `parts`, in order
    choice,      // one of `parts`
    repeat       // parts[0], `least` to `most` times; most < 0: without limit
  };
  Kind kind = Kind::literal;
  std::string bytes;
  std::vector<CodePointRange> ranges;
  bool negated = false;
  int rule = 0;
  int least = 0, most = -1;
  std::vector<Expression> parts;
};

struct GrammarRule {
  std::string name;
  Expression body;
};

struct Grammar {
  std::vector<GrammarRule> rules;
  int root = 0;
};

}  // namespace tandem
