#include "src/text/jinja/tests.h"

#include <map>

#include "src/text/jinja/filters.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/unicode.h"

namespace tandem::jinja {
namespace {

template <typename T>
bool is_a(Runtime&, const Value& value, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return value.is<T>();
}

bool defined(Runtime&, const Value& value, const Arguments&) { return !value.is<Undefined>(); }
bool integer(Runtime&, const Value& value, const Arguments&) { return value.is<std::int64_t>(); }
bool number(Runtime&, const Value& value, const Arguments&) { return is_number(value); }
bool text(Runtime&, const Value& value, const Arguments&) { return value.text() != nullptr || value.is<Markup>(); }

template <bool wanted>
bool is_flag(Runtime&, const Value& value, const Arguments&) {
  return value.is<bool>() && *value.as<bool>() == wanted;
}

bool sequence(Runtime&, const Value& value, const Arguments&) {
  if (value.text() != nullptr || value.dict() != nullptr || value.is<Markup>()) return true;
  const Sequence* list = value.sequence();
  return list != nullptr &&
         (list->kind == SequenceKind::list || list->kind == SequenceKind::tuple || list->kind == SequenceKind::range);
}

bool iterable(Runtime&, const Value& value, const Arguments&) {
  return value.text() != nullptr || value.dict() != nullptr || value.sequence() != nullptr ||
         value.generator() != nullptr || value.is<Undefined>() || value.is<Markup>() || value.is<LoopPtr>();
}

bool callable(Runtime&, const Value& value, const Arguments&) {
  return value.is<MacroValue>() || value.is<Function>() || value.is<Method>() || value.is<LoopPtr>();
}

std::int64_t rest(Runtime& runtime, const Value& value, const Value& divisor) {
  const Value result = binary(runtime, BinaryOp::modulo, value, divisor);
  if (!is_integer(result)) unsupported("the rest of a division of floats in a test is not supported");
  return integer_of(result);
}

template <std::int64_t wanted>
bool parity(Runtime& runtime, const Value& value, const Arguments&) {
  return rest(runtime, value, Value(std::int64_t{2})) == wanted;
}

bool divisible(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const Parameters given(arguments, {"num"}, 1);
  return rest(runtime, value, given[0]) == 0;
}

template <CompareOp op>
bool compares(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const Parameters given(arguments, {"other"}, 1);
  return compare(runtime, op, value, given[0]);
}

template <bool (*wanted)(std::string_view), bool (*unwanted)(std::string_view)>
bool letters(Runtime& runtime, const Value& value, const Arguments&) {
  const MarkedText text = runtime.to_text(value);
  const std::vector<std::size_t> starts = character_starts(text.bytes());
  runtime.spend(starts.size());
  bool any = false;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const std::string_view character = std::string_view(text.bytes()).substr(starts[i], starts[i + 1] - starts[i]);
    if (unwanted(character)) return false;
    any = any || wanted(character);
  }
  return any;
}

bool same(Runtime&, const Value& value, const Arguments& arguments) {
  const Parameters given(arguments, {"other"}, 1);
  const Value& other = given[0];
  if (value.is<bool>() || other.is<bool>() || value.is<None>() || other.is<None>()) {
    if (value.data().index() != other.data().index()) return false;
    return value.is<None>() || *value.as<bool>() == *other.as<bool>();
  }
  unsupported("sameas of anything but true, false and none is not supported");
}

template <bool filter>
bool exists(Runtime&, const Value& value, const Arguments&) {
  const MarkedText* name = value.text();
  if (name == nullptr) return false;
  return filter ? find_filter(name->bytes()) != nullptr : find_test(name->bytes()) != nullptr;
}

}  // namespace

Test find_test(std::string_view name) {
  static const std::map<std::string_view, Test> tests = {
      {"defined", defined},
      {"undefined", is_a<Undefined>},
      {"none", is_a<None>},
      {"boolean", is_a<bool>},
      {"true", is_flag<true>},
      {"false", is_flag<false>},
      {"integer", integer},
      {"float", is_a<double>},
      {"number", number},
      {"string", text},
      {"mapping", is_a<DictPtr>},
      {"sequence", sequence},
      {"iterable", iterable},
      {"callable", callable},
      {"odd", parity<1>},
      {"even", parity<0>},
      {"divisibleby", divisible},
      {"lower", letters<is_lower_letter, is_upper_letter>},
      {"upper", letters<is_upper_letter, is_lower_letter>},
      {"sameas", same},
      {"escaped", is_a<Markup>},
      {"filter", exists<true>},
      {"test", exists<false>},
      {"in", compares<CompareOp::in>},
      {"eq", compares<CompareOp::equal>},
      {"equalto", compares<CompareOp::equal>},
      {"==", compares<CompareOp::equal>},
      {"ne", compares<CompareOp::unequal>},
      {"!=", compares<CompareOp::unequal>},
      {"gt", compares<CompareOp::greater>},
      {"greaterthan", compares<CompareOp::greater>},
      {">", compares<CompareOp::greater>},
      {"ge", compares<CompareOp::greater_equal>},
      {">=", compares<CompareOp::greater_equal>},
      {"lt", compares<CompareOp::less>},
      {"lessthan", compares<CompareOp::less>},
      {"<", compares<CompareOp::less>},
      {"le", compares<CompareOp::less_equal>},
      {"<=", compares<CompareOp::less_equal>},
  };
  const auto found = tests.find(name);
  return found == tests.end() ? nullptr : found->second;
}

}  // namespace tandem::jinja
