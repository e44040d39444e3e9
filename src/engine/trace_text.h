// A trace as lines of at most about 100 columns for people.
#pragma once
#include <string>

#include "src/engine/trace.h"

namespace tandem {

// The bytes of a token in double quotes on one line: quotes, backslashes, control characters and bytes that are not
// UTF-8 escaped as in C; cut with an ellipsis where more than `most` characters would stand between the quotes.
std::string quoted(std::string_view bytes, int most = 20);

// Each ends with a newline. Tokens stand as `id "text"`; of a long prompt the middle is left out.
std::string prompt_text(std::span<const TokenId> ids, const Tokenizer& tokenizer);
std::string to_text(const PrefillTrace& prefill);
std::string to_text(const StepTrace& step, const Tokenizer& tokenizer);

// The proposal alone, a line a node below its parent: token, source, q, p, what became of it.
std::string tree_text(const StepTrace& step, const Tokenizer& tokenizer);

}  // namespace tandem
