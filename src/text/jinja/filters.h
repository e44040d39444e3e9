// The filters of template expressions.
#pragma once
#include <string_view>

#include "src/text/jinja/runtime.h"

namespace tandem::jinja {

using Filter = Value (*)(Runtime&, const Value& subject, const Arguments&);

// Null for one that is not supported.
Filter find_filter(std::string_view name);

// The tables that find_filter searches, by what the filters work on.
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
std::vector<NamedFilter> text_filters();
std::vector<NamedFilter> list_filters();
std::vector<NamedFilter> selection_filters();
std::vector<NamedFilter> scalar_filters();

}  // namespace tandem::jinja
