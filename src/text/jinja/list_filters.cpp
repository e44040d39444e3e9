// Filters on lists and dicts.
#include <algorithm>

#include "src/text/jinja/compare.h"
#include "src/text/jinja/filters.h"
#include "src/text/jinja/iteration.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/unicode.h"

namespace tandem::jinja {
namespace {

// The rest of a generator that gives the items of `value`.
Generator::Next over(Runtime& runtime, const Value& value) {
  return [items = Iterator(runtime, value)]() mutable { return items.next(); };
}

Value length(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  const std::optional<std::int64_t> size = length_of(runtime, subject);
  if (!size) wrong("{}: a value of type {} has no length", arguments.callee, type_name(subject));
  return Value(*size);
}

Value list(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  return runtime.list(runtime.items(subject));
}

Value first(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  std::optional<Value> item = Iterator(runtime, subject).next();
  return item ? std::move(*item) : undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  if (subject.generator() != nullptr) wrong("last: a generator cannot be reversed");
  if (subject.is<Undefined>()) wrong("last: expected a list, got an undefined value");
  const std::vector<Value> items = runtime.items(subject);
  return items.empty() ? undefined("No last item, sequence was empty.") : items.back();
}

Value join(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"d", "attribute"});
  const MarkedText separator = given.has(0) ? runtime.to_text(given[0]) : MarkedText();
  const Value attribute = given.value_or_none(1);
  MarkedText out;
  bool is_first = true;
  for (const Value& entry : runtime.items(subject)) {
    if (!is_first) out.append(separator);
    is_first = false;
    out.append(runtime.to_text(path(runtime, entry, attribute)));
    runtime.require_text(out.size());
  }
  return runtime.text(std::move(out));
}

Value reverse(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  std::vector<Value> items = runtime.items(subject);
  std::reverse(items.begin(), items.end());
  if (subject.text() != nullptr) {
    MarkedText out;
    for (const Value& character : items) out.append(*character.text());
    return runtime.text(std::move(out));
  }
  Value backward = runtime.list(std::move(items));
  if (subject.generator() != nullptr) return backward;
  return runtime.generator([&runtime, backward] { return over(runtime, backward); });
}

Value items(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  return runtime.generator([&runtime, subject]() -> Generator::Next {
    if (subject.is<Undefined>()) return nullptr;
    if (subject.dict() == nullptr) wrong("items: expected a dict, got {}", type_name(subject));
    return over(runtime, dict_view(runtime, *subject.dict(), SequenceKind::items));
  });
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
      if (equal(a.key[i], b.key[i])) continue;
      const int sign = order(a.key[i], b.key[i]);
      if (sign == 2) unsupported("sorting NaN is not supported");
      return sign == -1;
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
  values.reserve(entries.size());
  for (Keyed& entry : entries) values.push_back(std::move(entry.value));
  return values;
}

Value sort(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"reverse", "case_sensitive", "attribute"});
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
  const Parameters given(arguments, {"case_sensitive", "by", "reverse"});
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
  const Parameters given(arguments, {"case_sensitive", "attribute"});
  const bool exact = given.truth_or(0, false);
  return runtime.generator([&runtime, subject, exact, attribute = given.value_or_none(1)]() -> Generator::Next {
    return [&runtime, exact, attribute, values = Iterator(runtime, subject), keys = std::vector<Value>()]() mutable {
      std::optional<Value> value;
      while ((value = values.next())) {
        Value key = path(runtime, *value, attribute);
        if (!exact) key = ignoring_case(runtime, key);
        if (!hashable(key)) wrong("unhashable type: {}", type_name(key));
        runtime.spend(1 + keys.size() / 4 * weight_of(key));
        if (std::any_of(keys.begin(), keys.end(), [&](const Value& known) { return equal(known, key); })) continue;
        keys.push_back(std::move(key));
        break;
      }
      return value;
    };
  });
}

Value batch(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"linecount", "fill_with"}, 1);
  return runtime.generator([&runtime, subject, size = given[0], fill = given.value_or_none(1)]() -> Generator::Next {
    return [&runtime, size, fill, values = Iterator(runtime, subject),
            row = std::vector<Value>()]() mutable -> std::optional<Value> {
      const auto length = [&] { return Value(static_cast<std::int64_t>(row.size())); };
      while (std::optional<Value> value = values.next()) {
        const bool full = equal(length(), size);
        std::vector<Value> done = full ? std::exchange(row, {}) : std::vector<Value>();
        row.push_back(std::move(*value));
        if (full) return runtime.list(std::move(done));
      }
      if (row.empty()) return std::nullopt;
      while (!fill.is<None>() && order(length(), size) == -1) {
        runtime.spend(1);
        row.push_back(fill);
      }
      return runtime.list(std::exchange(row, {}));
    };
  });
}

Value sum(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"attribute", "start"});
  Value total = given.has(1) ? given[1] : Value(std::int64_t{0});
  if (total.text() != nullptr) wrong("sum: can't sum strings");
  const Value attribute = given.value_or_none(0);
  for (const Value& value : runtime.items(subject)) {
    total = binary(runtime, BinaryOp::add, total, path(runtime, value, attribute));
  }
  return total;
}

template <int wanted>
Value extreme(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> values = runtime.items(subject);
  if (values.empty()) return undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const Value& value) {
    const Value key = path(runtime, value, given.value_or_none(1));
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
