// Reads a template.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "src/text/jinja/ast.h"

namespace tandem::jinja {

struct Tree {
  Body body;
  std::set<std::string> strings;  // its string literals
};

// Throws SyntaxFault with the place of what is wrong or not supported.
Tree parse(std::string_view source);

}  // namespace tandem::jinja
