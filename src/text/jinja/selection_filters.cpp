// Filters that run another filter or a test on every item.
#include "src/text/jinja/filters.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/tests.h"

namespace tandem::jinja {
namespace {

// The arguments after the first `used` positional ones.
Arguments remaining(const Arguments& arguments, std::size_t used) {
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used), arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

const std::string& name_at(const Arguments& arguments, std::size_t i, const char* what) {
  const MarkedText* name = arguments.positional[i].text();
  if (name == nullptr) wrong("expected the name of a {}, got {}", what, type_name(arguments.positional[i]));
  return name->bytes();
}

Value map_attribute(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("map", arguments, {"attribute", "default"});
  std::vector<Value> out;
  for (const Value& value : runtime.items(subject)) {
    Value found = path(runtime, value, given[0]);
    const bool missing = found.is<Undefined>() && given.has(1) && !given[1].is<None>();
    out.push_back(missing ? given[1] : std::move(found));
  }
  return runtime.list(std::move(out), SequenceKind::generator);
}

Value map(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const bool by_attribute = arguments.positional.empty() && !arguments.named.empty();
  if (by_attribute) {
    bool named = false;
    for (const auto& [name, value] : arguments.named) named = named || name == "attribute";
    if (!named) wrong("map: expected a filter or an attribute");
    return map_attribute(runtime, subject, arguments);
  }
  if (arguments.positional.empty()) wrong("map: expected a filter or an attribute");
  const std::string& name = name_at(arguments, 0, "filter");
  const Filter filter = find_filter(name);
  if (filter == nullptr) unsupported("filter {} is not supported", name);
  const Arguments rest = remaining(arguments, 1);
  std::vector<Value> out;
  for (const Value& value : runtime.items(subject)) out.push_back(filter(runtime, value, rest));
  return runtime.list(std::move(out), SequenceKind::generator);
}

template <bool keep, bool by_attribute>
Value select(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  constexpr std::size_t kUsed = by_attribute ? 1 : 0;
  if (arguments.positional.size() < kUsed) wrong("selectattr: expected the name of an attribute");
  Test test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > kUsed) {
    const std::string& name = name_at(arguments, kUsed, "test");
    test = find_test(name);
    if (test == nullptr) unsupported("test {} is not supported", name);
    rest = remaining(arguments, kUsed + 1);
  }
  std::vector<Value> out;
  for (const Value& value : runtime.items(subject)) {
    const Value tested = by_attribute ? path(runtime, value, arguments.positional[0]) : value;
    if ((test != nullptr ? test(runtime, tested, rest) : truth(tested)) == keep) out.push_back(value);
  }
  return runtime.list(std::move(out), SequenceKind::generator);
}

}  // namespace

std::vector<NamedFilter> selection_filters() {
  return {{"map", map},
          {"select", select<true, false>},
          {"reject", select<false, false>},
          {"selectattr", select<true, true>},
          {"rejectattr", select<false, true>}};
}

}  // namespace tandem::jinja
