// Attributes, subscripts and slices.
#include <algorithm>
#include <optional>
#include <set>

#include "src/text/jinja/compare.h"
#include "src/text/jinja/loop_state.h"
#include "src/text/jinja/operators.h"

namespace tandem::jinja {
namespace {

using Names = std::set<std::string_view>;

// What Python's types bring of their own: found before a dict's keys where a template writes a dot.
const Names& python_attributes(const Value& value) {
  static const Names none;
  static const Names text = {"capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
                             "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
                             "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
                             "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
                             "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
                             "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
                             "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
                             "swapcase",     "title",       "translate", "upper",      "zfill"};
  static const Names list = {"append", "clear", "copy",   "count",   "extend", "index",
                             "insert", "pop",   "remove", "reverse", "sort"};
  static const Names tuple = {"count", "index"};
  static const Names view = {"isdisjoint", "mapping"};
  static const Names range = {"count", "index", "start", "stop", "step"};
  static const Names generator = {"close", "send", "throw", "gi_code", "gi_frame", "gi_running", "gi_yieldfrom"};
  static const Names dict = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                             "pop",   "popitem", "setdefault", "update", "values"};
  static const Names number = {"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
                               "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
                               "numerator",        "real",      "to_bytes"};
  if (value.text() != nullptr) return text;
  if (value.dict() != nullptr) return dict;
  if (value.generator() != nullptr) return generator;
  if (is_number(value)) return number;
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr) return none;
  switch (sequence->kind) {
    case SequenceKind::list:
      return list;
    case SequenceKind::tuple:
      return tuple;
    case SequenceKind::range:
      return range;
    default:
      return view;
  }
}

std::optional<Value> python_attribute(Runtime& runtime, const Value& object, const std::string& name) {
  if (name.starts_with("__")) unsupported("attribute {} is not supported", name);
  if (const Undefined* missing = object.as<Undefined>())
    wrong("{}", missing->why ? *missing->why : "a value is undefined");
  if (const NamespacePtr* space = object.as<NamespacePtr>()) {
    runtime.spend((*space)->attributes.size() / 4);
    for (const auto& [known, value] : (*space)->attributes) {
      if (known == name) return value;
    }
    return std::nullopt;
  }
  if (const LoopPtr* loop = object.as<LoopPtr>()) {
    if (auto value = (*loop)->attribute(name)) return value;
    if (name == "cycle" || name == "changed") return Value(Method{std::make_shared<const Value>(object), name});
    return std::nullopt;
  }
  if (object.is<MacroValue>() || object.is<Function>() || object.is<Method>() || object.is<Markup>()) {
    unsupported("attribute {} of a {} is not supported", name, type_name(object));
  }
  if (python_attributes(object).contains(name)) return Value(Method{std::make_shared<const Value>(object), name});
  return std::nullopt;
}

Value missing(const Value& object, const std::string& name) {
  return undefined(fmt::format("'{} object' has no attribute '{}'", type_name(object), name));
}

// Where a bound lies in something of `size`, clamped as Python does it.
std::int64_t clamped(const Value* bound, std::int64_t fallback, std::int64_t size, bool backward) {
  if (bound == nullptr || bound->is<None>()) return fallback;
  if (!is_integer(*bound)) wrong("expected an integer or none in a slice, got {}", type_name(*bound));
  std::int64_t at = integer_of(*bound);
  if (at < 0) at = std::max<std::int64_t>(at, -size - 1) + size;
  return backward ? std::clamp<std::int64_t>(at, -1, size - 1) : std::clamp<std::int64_t>(at, 0, size);
}

bool subscriptable(const Sequence& sequence) {
  return sequence.kind == SequenceKind::list || sequence.kind == SequenceKind::tuple ||
         sequence.kind == SequenceKind::range;
}

std::optional<Value> element(Runtime& runtime, const Value& object, std::int64_t index) {
  if (const Sequence* sequence = object.sequence()) {
    if (!subscriptable(*sequence)) return std::nullopt;
    const auto size = static_cast<std::int64_t>(sequence->items.size());
    if (index < -size || index >= size) return std::nullopt;
    return sequence->items[static_cast<std::size_t>(index < 0 ? index + size : index)];
  }
  if (const MarkedText* text = object.text()) {
    runtime.spend(text->size() / 8);
    const std::vector<std::size_t> starts = character_starts(text->bytes());
    const auto size = static_cast<std::int64_t>(starts.size()) - 1;
    if (index < -size || index >= size) return std::nullopt;
    const auto at = static_cast<std::size_t>(index < 0 ? index + size : index);
    return runtime.text(text->slice(starts[at], starts[at + 1]));
  }
  return std::nullopt;
}

}  // namespace

Value attribute(Runtime& runtime, const Value& object, const std::string& name) {
  if (auto value = python_attribute(runtime, object, name)) return *value;
  if (const Dict* dict = object.dict()) {
    runtime.spend(dict->entries.size() / 4);
    if (const Value* value = find(*dict, name)) return *value;
  }
  return missing(object, name);
}

Value item(Runtime& runtime, const Value& object, const Value& index) {
  if (const Undefined* unknown = object.as<Undefined>())
    wrong("{}", unknown->why ? *unknown->why : "a value is undefined");
  if (const Dict* dict = object.dict()) {
    runtime.spend(dict->entries.size() / 4);
    const Value* value = hashable(index) ? find(*dict, index) : nullptr;
    if (value != nullptr) return *value;
  } else if (is_integer(index)) {
    if (auto value = element(runtime, object, integer_of(index))) return *value;
  }
  if (const MarkedText* name = index.text()) {
    if (auto value = python_attribute(runtime, object, name->bytes())) return *value;
    return missing(object, name->bytes());
  }
  return undefined(fmt::format("'{} object' has no such element", type_name(object)));
}

Value slice(Runtime& runtime, const Value& object, const Value* start, const Value* stop, const Value* step_value) {
  const MarkedText* text = object.text();
  const Sequence* sequence = object.sequence();
  if (const Undefined* unknown = object.as<Undefined>())
    wrong("{}", unknown->why ? *unknown->why : "a value is undefined");
  if (text == nullptr && (sequence == nullptr || !subscriptable(*sequence))) {
    unsupported("a slice of a {} is not supported", type_name(object));
  }
  std::int64_t step = 1;
  if (step_value != nullptr && !step_value->is<None>()) {
    if (!is_integer(*step_value)) wrong("expected an integer or none in a slice, got {}", type_name(*step_value));
    step = integer_of(*step_value);
    if (step == 0) wrong("slice step cannot be zero");
  }
  const std::vector<std::size_t> starts =
      text != nullptr ? character_starts(text->bytes()) : std::vector<std::size_t>{};
  const auto size = static_cast<std::int64_t>(text != nullptr ? starts.size() - 1 : sequence->items.size());
  const bool backward = step < 0;
  const std::int64_t first = clamped(start, backward ? size - 1 : 0, size, backward);
  const std::int64_t last = clamped(stop, backward ? -1 : size, size, backward);
  step = std::clamp(step, -size - 1, size + 1);
  runtime.spend(static_cast<std::size_t>(size) / 8);
  if (text != nullptr && step == 1) {
    return runtime.text(
        first < last ? text->slice(starts[static_cast<std::size_t>(first)], starts[static_cast<std::size_t>(last)])
                     : MarkedText());
  }
  MarkedText out;
  std::vector<Value> items;
  for (std::int64_t i = first; backward ? i > last : i < last; i += step) {
    const auto at = static_cast<std::size_t>(i);
    if (text != nullptr) {
      out.append_slice(*text, starts[at], starts[at + 1]);
    } else {
      items.push_back(sequence->items[at]);
    }
  }
  if (text != nullptr) return runtime.text(std::move(out));
  if (sequence->kind == SequenceKind::range) unsupported("a slice of a range is not supported; make it a list first");
  return runtime.list(std::move(items), sequence->kind);
}

Value path(Runtime& runtime, Value object, const Value& attribute, const Value* fallback) {
  const auto step = [&](const Value& part) {
    object = item(runtime, object, part);
    if (fallback != nullptr && object.is<Undefined>()) object = *fallback;
  };
  const MarkedText* name = attribute.text();
  if (name == nullptr) {
    if (!attribute.is<None>()) step(attribute);
    return object;
  }
  std::string_view rest = name->bytes();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos && part.size() < 10;
    step(number ? Value(std::int64_t{std::stoi(part)}) : literal(part));
    if (dot == std::string_view::npos) return object;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace tandem::jinja
