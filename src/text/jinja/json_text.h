// JSON in and out of values, and the text of numbers.
#pragma once
#include <nlohmann/json.hpp>

#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

// repr() of a Python float.
std::string float_text(double value);

// json.dumps as Hugging Face's `tojson` filter calls it; arguments ensure_ascii, indent, separators, sort_keys.
Value to_json(Runtime& runtime, const Value& value, const Arguments& arguments);

// The value of a JSON text; its strings are input, but where `trusted` says that they are the template's own.
Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool trusted = false);

}  // namespace tandem::jinja
