// The tests of template expressions, which `is` asks.
#pragma once
#include <string_view>

#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

using Test = bool (*)(Runtime&, const Value& subject, const Arguments&);

// Null for one that is not supported.
Test find_test(std::string_view name);

}  // namespace tandem::jinja
