#include "src/sample/grammar/choices.h"

namespace tandem {

Grammar choices_grammar(const std::vector<std::string>& texts) {
  Expression choice{.kind = Expression::Kind::choice};
  for (const std::string& text : texts) choice.parts.push_back({.kind = Expression::Kind::literal, .bytes = text});
  return {.rules = {{"root", std::move(choice)}}, .root = 0};
}

}  // namespace tandem
