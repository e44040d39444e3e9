// The proof that branches of oneOf cannot both hold.
#pragma once
#include "src/sample/grammar/schema_document.h"

namespace tandem {

// Throws Error(config) with the pointer of `node`, a subschema with oneOf, unless for every two branches it is plain
// that no value satisfies both: their types, constants, bounds or lengths exclude each other, those of `node` itself
// added, or the values of a property or element that both require do.
void require_branches_apart(SchemaDocument& document, int node);

}  // namespace tandem
