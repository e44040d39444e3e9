#include "src/text/jinja/runtime.h"

#include <algorithm>

#include "src/text/jinja/compare.h"
#include "src/text/jinja/iteration.h"

namespace tandem::jinja {
namespace {

// A list may hold one list many times over, so what it costs to walk can be far more than what it takes to store.
std::size_t add_weights(std::size_t a, std::size_t b) { return std::min<std::size_t>(a + b, std::size_t{1} << 40); }

}  // namespace

Runtime::~Runtime() {
  for (const GeneratorPtr& generator : generators_) generator->release();
}

Runtime::Nested::Nested(Runtime& runtime) : runtime_(runtime) {
  if (runtime.running_generators_ >= runtime.limits_.value_depth) {
    unsupported("expected at most {} generators that ask one another, got more", runtime.limits_.value_depth);
  }
  ++runtime.running_generators_;
}

Value Runtime::generator(Generator::Begin begin) {
  spend(20);  // it is kept to the end
  generators_.push_back(std::make_shared<Generator>(*this, std::move(begin)));
  return Value(generators_.back());
}

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

void Runtime::spend_search(const MarkedText& text, const MarkedText& part) {
  spend(text.size() / 8 + text.size() / 64 * (part.size() / 64));
}

void Runtime::require_text(std::size_t bytes) const {
  if (bytes > limits_.text_bytes) {
    unsupported("expected at most {} bytes of text on the way, got more", limits_.text_bytes);
  }
}

Value Runtime::text(MarkedText text) {
  text_bytes_ += text.size();
  require_text(text_bytes_);
  return Value(std::make_shared<const MarkedText>(std::move(text)));
}

MarkedText Runtime::blanks(std::string_view filter, std::int64_t count) {
  constexpr std::int64_t kMost = 1000;
  if (count > kMost) unsupported("{}: expected an indentation of at most {}, got {}", filter, kMost, count);
  return {std::string(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), ' '), false};
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
  if (kind == SequenceKind::keys || kind == SequenceKind::items) {  // compare as sets
    sequence->weight = add_weights(sequence->weight, items.size() * items.size() / 64);
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
  for (std::pair<Value, Value>& entry : entries) {
    spend(1 + dict->entries.size() / 8);
    if (!hashable(entry.first)) wrong("unhashable type: {}", type_name(entry.first));
    dict->depth = std::max({dict->depth, 1 + depth_of(entry.first), 1 + depth_of(entry.second)});
    dict->weight = add_weights(dict->weight, add_weights(weight_of(entry.first), weight_of(entry.second)));
    const auto same = std::find_if(dict->entries.begin(), dict->entries.end(),
                                   [&](const auto& known) { return equal(known.first, entry.first); });
    if (same != dict->entries.end()) {
      same->second = std::move(entry.second);
    } else {
      dict->entries.push_back(std::move(entry));
    }
  }
  // A comparison looks each key up among all others.
  dict->weight = add_weights(dict->weight, dict->entries.size() * dict->entries.size() / 64);
  if (dict->depth > limits_.value_depth) {
    unsupported("expected at most {} lists inside one another, got more", limits_.value_depth);
  }
  return Value(DictPtr(std::move(dict)));
}

std::vector<Value> Runtime::items(const Value& value) {
  std::vector<Value> items;
  Iterator iterator(*this, value);
  while (std::optional<Value> item = iterator.next()) items.push_back(std::move(*item));
  return items;
}

Parameters::Parameters(const Arguments& arguments, std::initializer_list<std::string_view> names, std::size_t required)
    : callee_(arguments.callee), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    wrong("{}: expected at most {} arguments, got {}", callee_, names_.size(), arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) wrong("{}: there is no argument {}", callee_, name);
    const Value*& slot = values_[static_cast<std::size_t>(at - names_.begin())];
    if (slot != nullptr) wrong("{}: argument {} is given twice", callee_, name);
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) wrong("{}: argument {} is missing", callee_, names_[i]);
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
