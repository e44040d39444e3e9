// str.format
#pragma once
#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

// `format` with the arguments in its {}, {0} and {name}. Throws Problem for what Python refuses, and for fields with
// more in them, such as {:02d} or {a.b}, which are not supported.
MarkedText format_text(Runtime& runtime, const MarkedText& format, const Arguments& arguments);

}  // namespace tandem::jinja
