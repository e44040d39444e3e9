// The \uXXXX spellings of code points.
#pragma once
#include "src/sample/grammar/code_points.h"

namespace tandem {

// Every code point of `set` as \uXXXX, above U+FFFF as two of them; the digits in either case. `set` is normalised and
// not empty.
Expression unicode_escapes(const CodePoints& set);

}  // namespace tandem
