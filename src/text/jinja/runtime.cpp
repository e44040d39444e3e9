#include "src/text/jinja/runtime.h"

#include <algorithm>

#include "src/text/jinja/compare.h"

namespace tandem::jinja {
namespace {

// A list may hold one list many times over, so what it costs to walk can be far more than what it takes to store.
std::size_t add_weights(std::size_t a, std::size_t b) { return std::min<std::size_t>(a + b, std::size_t{1} << 40); }

}  // namespace

void Runtime::spend(std::size_t steps) {
  steps_ += std::min(steps, limits_.steps + 1);
  if (steps_ > limits_.steps) unsupported("expected at most {} steps of the template, got more", limits_.steps);
}

void Runtime::spend_output(std::size_t bytes) {
  output_bytes_ += bytes;
  if (output_bytes_ > limits_.output_bytes) {
    unsupported("expected at most {} bytes of rendered text, got more", limits_.output_bytes);
  }
}

Value Runtime::text(MarkedText text) {
  text_bytes_ += text.size();
  if (text_bytes_ > limits_.text_bytes) {
    unsupported("expected at most {} bytes of text on the way, got more", limits_.text_bytes);
  }
  return Value(std::make_shared<const MarkedText>(std::move(text)));
}

Value Runtime::list(std::vector<Value> items, SequenceKind kind) {
  spend(items.size());
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  for (const Value& item : items) {
    sequence->depth = std::max(sequence->depth, 1 + depth_of(item));
    sequence->weight = add_weights(sequence->weight, weight_of(item));
  }
  if (sequence->depth > limits_.value_depth) {
    unsupported("expected at most {} lists inside one another, got more", limits_.value_depth);
  }
  sequence->items = std::move(items);
  return Value(SequencePtr(std::move(sequence)));
}

Value Runtime::range(std::vector<Value> items, std::string label) {
  spend(items.size());
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = SequenceKind::range;
  sequence->weight = 1 + items.size();
  sequence->items = std::move(items);
  sequence->label = std::move(label);
  return Value(SequencePtr(std::move(sequence)));
}

Value Runtime::dict(std::vector<std::pair<Value, Value>> entries) {
  auto dict = std::make_shared<Dict>();
  for (auto& [key, value] : entries) {
    spend(1 + dict->entries.size() / 8);
    const bool hashable =
        key.dict() == nullptr && (key.sequence() == nullptr || key.sequence()->kind == SequenceKind::tuple);
    if (!hashable) wrong("unhashable type: {}", type_name(key));
    dict->depth = std::max({dict->depth, 1 + depth_of(key), 1 + depth_of(value)});
    dict->weight = add_weights(dict->weight, add_weights(weight_of(key), weight_of(value)));
    const auto same = std::find_if(dict->entries.begin(), dict->entries.end(),
                                   [&key = key](const auto& entry) { return equal(entry.first, key); });
    if (same != dict->entries.end()) {
      same->second = std::move(value);
    } else {
      dict->entries.emplace_back(std::move(key), std::move(value));
    }
  }
  if (dict->depth > limits_.value_depth) {
    unsupported("expected at most {} lists inside one another, got more", limits_.value_depth);
  }
  return Value(DictPtr(std::move(dict)));
}

std::vector<Value> Runtime::items(const Value& value) {
  if (const Sequence* sequence = value.sequence()) {
    const auto first = sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->next);
    spend(sequence->items.size() - sequence->next);
    if (sequence->kind == SequenceKind::generator) sequence->next = sequence->items.size();
    return {first, sequence->items.end()};
  }
  std::vector<Value> items;
  if (const Dict* dict = value.dict()) {
    spend(dict->entries.size());
    for (const auto& [key, held] : dict->entries) items.push_back(key);
  } else if (const MarkedText* whole = value.text()) {
    const std::vector<std::size_t> starts = character_starts(whole->bytes());
    spend(starts.size());
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) items.push_back(text(whole->slice(starts[i], starts[i + 1])));
  } else if (!value.is<Undefined>()) {
    wrong("a value of type {} is not iterable", type_name(value));
  }
  return items;
}

Parameters::Parameters(std::string_view callee, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, std::size_t required)
    : callee_(callee), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    wrong("{}: expected at most {} arguments, got {}", callee, names_.size(), arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) wrong("{}: there is no argument {}", callee, name);
    const Value*& slot = values_[static_cast<std::size_t>(at - names_.begin())];
    if (slot != nullptr) wrong("{}: argument {} is given twice", callee, name);
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) wrong("{}: argument {} is missing", callee, names_[i]);
  }
}

std::int64_t Parameters::integer_or(std::size_t i, std::int64_t fallback) const {
  if (!has(i)) return fallback;
  if (!is_integer(*values_[i])) {
    wrong("{}: {}: expected an integer, got {}", callee_, names_[i], type_name(*values_[i]));
  }
  return integer_of(*values_[i]);
}

const MarkedText& Parameters::text(std::size_t i) const {
  const MarkedText* text = values_[i]->text();
  if (text == nullptr) wrong("{}: {}: expected a string, got {}", callee_, names_[i], type_name(*values_[i]));
  return *text;
}

}  // namespace tandem::jinja
