// A grammar of a few texts.
#pragma once
#include <string>
#include <vector>

#include "src/sample/grammar/grammar.h"

namespace tandem {

// Matches each of `texts`, as they are, and nothing else.
Grammar choices_grammar(const std::vector<std::string>& texts);

}  // namespace tandem
