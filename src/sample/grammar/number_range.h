// JSON numbers within bounds, as grammar expressions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "src/sample/grammar/decimal.h"
#include "src/sample/grammar/json_rules.h"

namespace tandem {

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<NumberBound> minimum, maximum;
  std::int64_t multiple_of = 1;  // of whole numbers; 1: any
  bool whole = false;            // no fraction
};

// The numbers of `range`. Whole ones are spelt without point and exponent. Others with bounds have no exponent and at
// most 15 digits behind the point, less the digits before the point of an exclusive bound: so far every reader that
// holds numbers in doubles tells them from that bound. Numbers without bounds are JsonRules::number() and integer().
// Throws Error(config) that begins with `place` for what cannot be exact: a bound of more than 40 digits before its
// point, an exclusive one of more than 15 when fractions are allowed, multiple_of above 1000.
Expression number_in(NumberRange range, JsonRules& rules, const std::string& place);

}  // namespace tandem
