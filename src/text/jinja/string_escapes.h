// The escapes of a string literal.
#pragma once
#include <string>
#include <string_view>

namespace tandem::jinja {

// Reads the inside of a string literal as Python's unicode-escape codec does. Returns null, or what is wrong with it.
const char* read_escapes(std::string_view literal, std::string& value);

}  // namespace tandem::jinja
