// Python's comparisons of values.
#pragma once
#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

// a == b: numbers by value, texts by their bytes, lists and dicts by what they hold; never throws.
bool equal(const Value& a, const Value& b);

// Negative, 0 or positive as a < b, a == b, a > b; 2 when neither (NaN). Throws Problem where Python has no order.
int order(const Value& a, const Value& b);

// `needle in haystack`. Uses up a generator up to the match. Throws Problem where Python has no answer.
bool contains(Runtime& runtime, const Value& haystack, const Value& needle);

}  // namespace tandem::jinja
