// The members of an object in order, with their counts.
#pragma once
#include <functional>
#include <string>

#include "src/sample/grammar/json_rules.h"
#include "src/sample/grammar/schema_shape.h"

namespace tandem {

// An object of `members`, of which there are `counts`; `value_of` gives the expression of a member's value. Throws
// Error(config) that begins with `place` when the least count would have to tell names that are not declared apart.
Expression object_of(const ObjectMembers& members, TextLength counts, JsonRules& rules,
                     const std::function<Expression(const Conjunction&)>& value_of, const std::string& place);

}  // namespace tandem
