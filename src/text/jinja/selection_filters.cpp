// Filters that run another filter or a test on every item. As in Jinja nothing happens, and nothing is wrong, before an
// item is asked for, and a false subject has none.
#include <algorithm>

#include "src/text/jinja/filters.h"
#include "src/text/jinja/iteration.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/tests.h"

namespace tandem::jinja {
namespace {

// The arguments after the first `used` positional ones, for the filter or test that the last of those names.
Arguments remaining(const Arguments& arguments, std::size_t used) {
  Arguments rest;
  if (const MarkedText* callee = arguments.positional[used - 1].text()) rest.callee = callee->bytes();
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used), arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

// What `find` has under the name that is the argument `i`.
template <typename Find>
auto named(const Arguments& arguments, std::size_t i, const char* what, Find find) {
  const MarkedText* name = arguments.positional[i].text();
  if (name == nullptr) wrong("expected the name of a {}, got {}", what, type_name(arguments.positional[i]));
  const auto found = find(name->bytes());
  if (found == nullptr) unsupported("{} {} is not supported", what, name->bytes());
  return found;
}

Generator::Next mapped_attributes(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"attribute", "default"});
  if (!given.has(0)) wrong("map: expected a filter or an attribute");
  return [&runtime, attribute = given[0], fallback = given.value_or_none(1),
          items = Iterator(runtime, subject)]() mutable {
    std::optional<Value> item = items.next();
    if (item) item = path(runtime, std::move(*item), attribute, fallback.is<None>() ? nullptr : &fallback);
    return item;
  };
}

Value map(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return runtime.generator([&runtime, subject, arguments]() -> Generator::Next {
    if (!truth(subject)) return nullptr;
    if (arguments.positional.empty()) return mapped_attributes(runtime, subject, arguments);
    return [&runtime, arguments, rest = remaining(arguments, 1), items = Iterator(runtime, subject)]() mutable {
      std::optional<Value> item = items.next();
      if (item) item = named(arguments, 0, "filter", find_filter)(runtime, *item, rest);
      return item;
    };
  });
}

template <bool keep, bool by_attribute>
Value select(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  constexpr std::size_t kUsed = by_attribute ? 1 : 0;
  const auto holds = [&runtime, arguments](const Value& item) {
    const Value tested = by_attribute ? path(runtime, item, arguments.positional[0]) : item;
    if (arguments.positional.size() == kUsed) return truth(tested);
    return named(arguments, kUsed, "test", find_test)(runtime, tested, remaining(arguments, kUsed + 1));
  };
  return runtime.generator([&runtime, subject, holds, arguments]() -> Generator::Next {
    if (!truth(subject)) return nullptr;
    if (arguments.positional.size() < kUsed) wrong("{}: expected the name of an attribute", arguments.callee);
    return [holds, items = Iterator(runtime, subject)]() mutable {
      std::optional<Value> item = items.next();
      while (item && holds(*item) != keep) item = items.next();
      return item;
    };
  });
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
