// What of a grammar can be matched at all.
#pragma once
#include "src/sample/grammar/grammar.h"

namespace tandem {

// Takes out every alternative and every rule that no finite text matches (a rule that always needs itself again, a
// choice of nothing) or that the root does not reach, so that whatever the grammar lets begin can also be finished.
// Returns false, and leaves the grammar without meaning, when the root itself matches no text.
bool keep_productive(Grammar& grammar);

}  // namespace tandem
