#include "src/sample/grammar/choices.h"

#include "src/sample/grammar/expression.h"

namespace tandem {

Grammar choices_grammar(const std::vector<std::string>& texts) {
  std::vector<Expression> parts;
  for (const std::string& text : texts) parts.push_back(expressions::literal(text));
  return {.rules = {{"root", expressions::choice(std::move(parts))}}, .root = 0};
}

}  // namespace tandem
