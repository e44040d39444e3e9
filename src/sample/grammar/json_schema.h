// JSON schemas (draft 2020-12, the part listed below) as grammars: every text of the grammar is JSON that the schema
// holds valid, and every valid value has a text in it, spelt as json_rules.h says.
//
// Supported:
//   anything   type, enum, const, allOf, anyOf, true, false, $ref within the document (# and #/...), $defs,
//   definitions;
//              oneOf where no value can satisfy two branches, else it is an error
//   objects    properties, required, additionalProperties, minProperties, maxProperties
//   arrays     items, prefixItems, minItems, maxItems
//   strings    minLength, maxLength (in code points), pattern (regex.h), format (string_formats.h)
//   numbers    minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf of whole numbers (number_range.h)
// Without effect on what is valid, and so without effect here: title, description, default, examples, $schema, $id,
// $comment, deprecated, readOnly, writeOnly, and uniqueItems when it is false. Every other keyword is an error.
//
// As in the standard, a keyword only binds values of its type, and properties that are not declared are allowed unless
// additionalProperties is false. Properties stand in the order of the document, others after them; a name that is not
// declared may come twice. An alternative that no finite value satisfies is left out; when nothing is left, that is an
// error, as is a reference that leads back to itself before any text.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "src/sample/grammar/grammar.h"

namespace tandem {

// A schema from its text; the order of properties is kept. Throws Error(config) that begins with `name` for text that
// is no JSON (with line and column), for a name that an object has twice, and beyond a depth of 64 or 1 MiB.
nlohmann::ordered_json parse_json_schema(std::string_view text, const std::string& name = "json schema");

// The values that `schema` holds valid. Throws Error(config): `name`, the JSON pointer of the keyword, what is wrong.
// Limits: see above, and 256 combinations of alternatives for one value, 128 prefixItems, counts of 10,000, 20,000
// rules and a million characters once repetitions are written out.
Grammar json_schema_grammar(const nlohmann::ordered_json& schema, const std::string& name = "json schema");

// Any JSON value.
Grammar any_json_grammar();

}  // namespace tandem
