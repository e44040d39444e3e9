// Filters on lists and dicts.
#include <algorithm>

#include "src/text/jinja/compare.h"
#include "src/text/jinja/filters.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/unicode.h"

namespace tandem::jinja {
namespace {

Value length(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("length", arguments, {});
  if (const MarkedText* text = subject.text()) {
    runtime.spend(text->size() / 64);
    return Value(static_cast<std::int64_t>(count_characters(text->bytes())));
  }
  if (const Dict* dict = subject.dict()) return Value(static_cast<std::int64_t>(dict->entries.size()));
  const Sequence* sequence = subject.sequence();
  if (sequence != nullptr && sequence->kind != SequenceKind::generator) {
    return Value(static_cast<std::int64_t>(sequence->items.size()));
  }
  if (subject.is<Undefined>()) return Value(std::int64_t{0});
  wrong("length: a value of type {} has no length", type_name(subject));
}

Value list(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("list", arguments, {});
  return runtime.list(runtime.items(subject));
}

Value first(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("first", arguments, {});
  const Sequence* sequence = subject.sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::generator && sequence->next < sequence->items.size()) {
    return sequence->items[sequence->next++];
  }
  const std::vector<Value> items = runtime.items(subject);
  return items.empty() ? undefined("No first item, sequence was empty.") : items.front();
}

Value last(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("last", arguments, {});
  const Sequence* sequence = subject.sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::generator) wrong("last: a generator cannot be reversed");
  if (subject.is<Undefined>()) wrong("last: expected a list, got an undefined value");
  const std::vector<Value> items = runtime.items(subject);
  return items.empty() ? undefined("No last item, sequence was empty.") : items.back();
}

Value join(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("join", arguments, {"d", "attribute"});
  const MarkedText separator = given.has(0) ? runtime.to_text(given[0]) : MarkedText();
  const bool has_attribute = given.has(1) && !given[1].is<None>();
  MarkedText out;
  bool is_first = true;
  for (const Value& entry : runtime.items(subject)) {
    if (!is_first) out.append(separator);
    is_first = false;
    out.append(runtime.to_text(has_attribute ? path(runtime, entry, given[1]) : entry));
    if (out.size() > runtime.limits().text_bytes)
      unsupported("join: expected at most {} bytes", runtime.limits().text_bytes);
  }
  return runtime.text(std::move(out));
}

Value reverse(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("reverse", arguments, {});
  std::vector<Value> items = runtime.items(subject);
  std::reverse(items.begin(), items.end());
  if (subject.text() != nullptr) {
    MarkedText out;
    for (const Value& character : items) out.append(*character.text());
    return runtime.text(std::move(out));
  }
  const Sequence* sequence = subject.sequence();
  const bool becomes_list =
      subject.is<Undefined>() || (sequence != nullptr && sequence->kind == SequenceKind::generator);
  return runtime.list(std::move(items), becomes_list ? SequenceKind::list : SequenceKind::generator);
}

Value items(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("items", arguments, {});
  std::vector<Value> pairs;
  if (const Dict* dict = subject.dict()) {
    for (const auto& [key, value] : dict->entries) pairs.push_back(runtime.list({key, value}, SequenceKind::tuple));
  } else if (!subject.is<Undefined>()) {
    wrong("items: expected a dict, got {}", type_name(subject));
  }
  return runtime.list(std::move(pairs), SequenceKind::generator);
}

// Text in lower case, anything else as it is.
Value ignoring_case(Runtime& runtime, const Value& value) {
  return value.text() == nullptr ? value : runtime.text(in_case(*value.text(), LetterCase::lower));
}

struct Keyed {
  std::vector<Value> key;
  Value value;
};

std::vector<Value> sorted(Runtime& runtime, std::vector<Keyed> entries, bool descending) {
  std::size_t weight = 1;
  for (const Keyed& entry : entries) {
    for (const Value& part : entry.key) weight += weight_of(part);
  }
  runtime.spend(weight * 8);
  const auto less = [&](const Keyed& a, const Keyed& b) {
    for (std::size_t i = 0; i < a.key.size(); ++i) {
      runtime.spend(1);
      if (!equal(a.key[i], b.key[i])) return order(a.key[i], b.key[i]) == -1;
    }
    return false;
  };
  // Python keeps equal items in order for a reversed sort too.
  if (descending) {
    std::stable_sort(entries.begin(), entries.end(), [&](const Keyed& a, const Keyed& b) { return less(b, a); });
  } else {
    std::stable_sort(entries.begin(), entries.end(), less);
  }
  std::vector<Value> values;
  for (Keyed& entry : entries) values.push_back(std::move(entry.value));
  return values;
}

Value sort(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool exact = given.truth_or(1, false);
  std::vector<Value> paths;
  if (given.has(2) && given[2].text() != nullptr) {
    std::string_view rest = given.text(2).bytes();
    for (std::size_t comma = 0; comma != std::string_view::npos;) {
      comma = rest.find(',');
      paths.push_back(literal(std::string(rest.substr(0, comma))));
      if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
    }
  } else if (given.has(2) && !given[2].is<None>()) {
    paths.push_back(given[2]);
  }
  std::vector<Keyed> entries;
  for (const Value& value : runtime.items(subject)) {
    Keyed entry{{}, value};
    if (paths.empty()) entry.key.push_back(value);
    for (const Value& attribute : paths) entry.key.push_back(path(runtime, value, attribute));
    for (Value& part : entry.key) part = exact ? part : ignoring_case(runtime, part);
    entries.push_back(std::move(entry));
  }
  return runtime.list(sorted(runtime, std::move(entries), given.truth_or(0, false)));
}

Value dict_sort(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const Dict* dict = subject.dict();
  if (dict == nullptr) wrong("dictsort: expected a dict, got {}", type_name(subject));
  const std::string by = given.has(1) ? given.text(1).bytes() : "key";
  if (by != "key" && by != "value") wrong("dictsort: by must be key or value");
  std::vector<Keyed> entries;
  for (const auto& [key, value] : dict->entries) {
    const Value& sort_by = by == "key" ? key : value;
    entries.push_back({{given.truth_or(0, false) ? sort_by : ignoring_case(runtime, sort_by)},
                       runtime.list({key, value}, SequenceKind::tuple)});
  }
  return runtime.list(sorted(runtime, std::move(entries), given.truth_or(2, false)));
}

Value unique(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("unique", arguments, {"case_sensitive", "attribute"});
  std::vector<Value> keys, kept;
  for (const Value& value : runtime.items(subject)) {
    Value key = given.has(1) && !given[1].is<None>() ? path(runtime, value, given[1]) : value;
    if (!given.truth_or(0, false)) key = ignoring_case(runtime, key);
    if (key.dict() != nullptr || (key.sequence() != nullptr && key.sequence()->kind == SequenceKind::list)) {
      wrong("unhashable type: {}", type_name(key));
    }
    runtime.spend(1 + keys.size() / 4 * weight_of(key));
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& known) { return equal(known, key); })) continue;
    keys.push_back(std::move(key));
    kept.push_back(value);
  }
  return runtime.list(std::move(kept), SequenceKind::generator);
}

Value batch(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = given.integer_or(0, 0);
  if (size < 1 || size > 1000000) unsupported("batch: expected 1..1000000 items, got {}", size);
  std::vector<Value> rows, row;
  for (const Value& value : runtime.items(subject)) {
    if (row.size() == static_cast<std::size_t>(size)) rows.push_back(runtime.list(std::exchange(row, {})));
    row.push_back(value);
  }
  if (!row.empty()) {
    if (given.has(1) && !given[1].is<None>()) row.resize(static_cast<std::size_t>(size), given[1]);
    rows.push_back(runtime.list(std::move(row)));
  }
  return runtime.list(std::move(rows), SequenceKind::generator);
}

Value sum(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("sum", arguments, {"attribute", "start"});
  Value total = given.has(1) ? given[1] : Value(std::int64_t{0});
  if (total.text() != nullptr) wrong("sum: can't sum strings");
  for (const Value& value : runtime.items(subject)) {
    const bool has_attribute = given.has(0) && !given[0].is<None>();
    total = binary(runtime, BinaryOp::add, total, has_attribute ? path(runtime, value, given[0]) : value);
  }
  return total;
}

template <int wanted>
Value extreme(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given("min", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> values = runtime.items(subject);
  if (values.empty()) return undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const Value& value) {
    const Value key = given.has(1) && !given[1].is<None>() ? path(runtime, value, given[1]) : value;
    return given.truth_or(0, false) ? key : ignoring_case(runtime, key);
  };
  const Value* best = &values.front();
  Value best_key = key_of(*best);
  for (std::size_t i = 1; i < values.size(); ++i) {
    Value key = key_of(values[i]);
    runtime.spend(weight_of(key));
    if (order(key, best_key) != wanted) continue;
    best = &values[i];
    best_key = std::move(key);
  }
  return *best;
}

}  // namespace

std::vector<NamedFilter> list_filters() {
  return {{"length", length}, {"count", length},    {"list", list},   {"first", first},     {"last", last},
          {"join", join},     {"reverse", reverse}, {"items", items}, {"sort", sort},       {"dictsort", dict_sort},
          {"unique", unique}, {"batch", batch},     {"sum", sum},     {"min", extreme<-1>}, {"max", extreme<1>}};
}

}  // namespace tandem::jinja
