// Cuts a template into tokens, with the whitespace control of trim_blocks and lstrip_blocks, as Hugging Face sets them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/text/jinja/ast.h"

namespace tandem::jinja {

enum class TokenKind {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Token {
  TokenKind kind;
  std::string text;  // data and strings as they stand, escapes read
  Place place;
};

// A template that cannot be read; caught by parse().
struct SyntaxFault {
  Place place;
  std::string what;
};

// Ends with a token of kind `end`. Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view source);

}  // namespace tandem::jinja
