#include "src/text/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "src/text/jinja/compare.h"

namespace tandem::jinja {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

const char* sequence_name(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::list:
      return "list";
    case SequenceKind::tuple:
      return "tuple";
    case SequenceKind::keys:
      return "dict_keys";
    case SequenceKind::values:
      return "dict_values";
    case SequenceKind::items:
      return "dict_items";
    case SequenceKind::range:
      return "range";
  }
  return "sequence";
}

}  // namespace

Value undefined(std::string why) { return Value(Undefined{std::make_shared<const std::string>(std::move(why))}); }

Value literal(std::string bytes) { return Value(std::make_shared<const MarkedText>(std::move(bytes), false)); }

const char* type_name(const Value& value) {
  return std::visit(
      Overloaded{[](const Undefined&) { return "Undefined"; }, [](const None&) { return "NoneType"; },
                 [](bool) { return "bool"; }, [](std::int64_t) { return "int"; }, [](double) { return "float"; },
                 [](const TextPtr&) { return "str"; }, [](const Markup&) { return "Markup"; },
                 [](const SequencePtr& s) { return sequence_name(s->kind); }, [](const DictPtr&) { return "dict"; },
                 [](const GeneratorPtr&) { return "generator"; }, [](const NamespacePtr&) { return "Namespace"; },
                 [](const MacroValue&) { return "Macro"; }, [](const Function&) { return "function"; },
                 [](const Method&) { return "method"; }, [](const LoopPtr&) { return "LoopContext"; }},
      value.data());
}

int depth_of(const Value& value) {
  if (const Sequence* sequence = value.sequence()) return sequence->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  if (const Method* method = value.as<Method>()) return 1 + depth_of(*method->self);
  return 0;
}

std::size_t weight_of(const Value& value) {
  if (const Sequence* sequence = value.sequence()) return sequence->weight;
  if (const Dict* dict = value.dict()) return dict->weight;
  if (const MarkedText* text = value.text()) return 1 + text->size() / 64;
  return 1;
}

bool hashable(const Value& value) {
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr) return value.dict() == nullptr;
  if (sequence->kind != SequenceKind::tuple) {
    return sequence->kind == SequenceKind::range || sequence->kind == SequenceKind::values;
  }
  return std::all_of(sequence->items.begin(), sequence->items.end(), hashable);
}

bool is_integer(const Value& value) { return value.is<bool>() || value.is<std::int64_t>(); }
bool is_number(const Value& value) { return is_integer(value) || value.is<double>(); }

std::int64_t integer_of(const Value& value) {
  if (const bool* flag = value.as<bool>()) return *flag ? 1 : 0;
  return *value.as<std::int64_t>();
}

double number_of(const Value& value) {
  if (const double* real = value.as<double>()) return *real;
  return static_cast<double>(integer_of(value));
}

bool truth(const Value& value) {
  return std::visit(
      Overloaded{[](const Undefined&) { return false; }, [](const None&) { return false; }, [](bool b) { return b; },
                 [](std::int64_t i) { return i != 0; }, [](double d) { return d != 0; },
                 [](const TextPtr& t) { return !t->empty(); }, [](const Markup& m) { return !m.text->empty(); },
                 [](const SequencePtr& s) { return !s->items.empty(); },
                 [](const DictPtr& d) { return !d->entries.empty(); }, [](const auto&) { return true; }},
      value.data());
}

const Value* find(const Dict& dict, const Value& key) {
  for (const auto& [name, value] : dict.entries) {
    if (equal(name, key)) return &value;
  }
  return nullptr;
}

const Value* find(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict.entries) {
    const MarkedText* text = name.text();
    if (text != nullptr && text->bytes() == key) return &value;
  }
  return nullptr;
}

}  // namespace tandem::jinja
