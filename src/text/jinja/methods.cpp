// The methods of strings, lists, dicts and the loop.
#include <algorithm>
#include <map>

#include "src/text/jinja/compare.h"
#include "src/text/jinja/format_text.h"
#include "src/text/jinja/loop_state.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/text_tools.h"
#include "src/text/jinja/unicode.h"

namespace tandem::jinja {
namespace {

using TextMethod = Value (*)(Runtime&, const MarkedText&, const Arguments&);

std::optional<std::string> optional_text(const Parameters& given, std::size_t i) {
  if (!given.has(i) || given[i].is<None>()) return std::nullopt;
  return given.text(i).bytes();
}

template <Side side>
Value strip(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"chars"});
  return runtime.text(stripped(text, side, optional_text(given, 0)));
}

template <bool from_right>
Value split_text(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"sep", "maxsplit"});
  const std::optional<std::string> separator = optional_text(given, 0);
  if (separator && separator->empty()) wrong("{}: empty separator", arguments.callee);
  const std::int64_t count = given.integer_or(1, -1);
  runtime.spend_search(text, separator ? given.text(0) : MarkedText());
  return texts(runtime,
               from_right ? split_from_right(runtime, text, separator, count) : split(runtime, text, separator, count));
}

template <bool at_end>
Value affix_test(Runtime&, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"prefix"}, 1);
  const auto holds = [&](const MarkedText& part) {
    return at_end ? text.bytes().ends_with(part.bytes()) : text.bytes().starts_with(part.bytes());
  };
  const Sequence* several = given[0].sequence();
  if (several == nullptr || several->kind != SequenceKind::tuple) return Value(holds(given.text(0)));
  return Value(std::any_of(several->items.begin(), several->items.end(), [&](const Value& part) {
    if (part.text() == nullptr) wrong("{}: expected strings, got {}", arguments.callee, type_name(part));
    return holds(*part.text());
  }));
}

template <bool at_end>
Value remove_affix(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"prefix"}, 1);
  const std::string& part = given.text(0).bytes();
  if (at_end && text.bytes().ends_with(part)) return runtime.text(text.slice(0, text.size() - part.size()));
  if (!at_end && text.bytes().starts_with(part)) return runtime.text(text.slice(part.size(), text.size()));
  return runtime.text(text);
}

template <LetterCase wanted>
Value change_case(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {});
  runtime.spend(text.size() / 8);
  return runtime.text(in_case(text, wanted));
}

Value capitalize(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {});
  return runtime.text(capitalized(text));
}

Value title(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {});
  return runtime.text(titled(text));
}

Value replace(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"old", "new", "count"}, 2);
  runtime.spend_search(text, given.text(0));
  return runtime.text(replaced(runtime, text, given.text(0), given.text(1), given.integer_or(2, -1)));
}

Value join(Runtime& runtime, const MarkedText& separator, const Arguments& arguments) {
  const Parameters given(arguments, {"iterable"}, 1);
  MarkedText out;
  bool first = true;
  for (const Value& part : runtime.items(given[0])) {
    if (part.text() == nullptr) wrong("join: expected strings, got {}", type_name(part));
    if (!first) out.append(separator);
    first = false;
    out.append(*part.text());
    runtime.require_text(out.size());
  }
  return runtime.text(std::move(out));
}

Value format(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  return runtime.text(format_text(runtime, text, arguments));
}

template <bool from_right, bool must>
Value find_text(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"sub"}, 1);
  const std::string& part = given.text(0).bytes();
  runtime.spend_search(text, given.text(0));
  const std::size_t at = from_right ? text.bytes().rfind(part) : text.bytes().find(part);
  if (at == std::string::npos && must) wrong("substring not found");
  if (at == std::string::npos) return Value(std::int64_t{-1});
  return Value(static_cast<std::int64_t>(count_characters(std::string_view(text.bytes()).substr(0, at))));
}

Value count(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"sub"}, 1);
  const std::string& part = given.text(0).bytes();
  runtime.spend_search(text, given.text(0));
  if (part.empty()) return Value(static_cast<std::int64_t>(count_characters(text.bytes())) + 1);
  std::int64_t found = 0;
  for (std::size_t at = text.bytes().find(part); at != std::string::npos;
       at = text.bytes().find(part, at + part.size()))
    ++found;
  return Value(found);
}

template <bool from_right>
Value partition(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"sep"}, 1);
  const MarkedText& separator = given.text(0);
  if (separator.empty()) wrong("{}: empty separator", arguments.callee);
  runtime.spend_search(text, separator);
  const std::size_t at = from_right ? text.bytes().rfind(separator.bytes()) : text.bytes().find(separator.bytes());
  std::vector<MarkedText> parts;
  if (at == std::string::npos) {
    parts = from_right ? std::vector<MarkedText>{{}, {}, text} : std::vector<MarkedText>{text, {}, {}};
  } else {
    parts = {text.slice(0, at), text.slice(at, at + separator.size()), text.slice(at + separator.size(), text.size())};
  }
  return texts(runtime, std::move(parts), SequenceKind::tuple);
}

Value split_lines(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {"keepends"});
  return texts(runtime, lines(runtime, text, given.truth_or(0, false)));
}

template <bool (*holds)(std::string_view)>
Value all_characters(Runtime& runtime, const MarkedText& text, const Arguments& arguments) {
  const Parameters given(arguments, {});
  runtime.spend(text.size() / 8);
  const std::vector<std::size_t> starts = character_starts(text.bytes());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    if (!holds(std::string_view(text.bytes()).substr(starts[i], starts[i + 1] - starts[i]))) return Value(false);
  }
  return Value(!text.empty());
}

bool is_digit(std::string_view character) {
  if (character.size() > 1) unsupported("isdigit of a character beyond ASCII is not supported");
  return character[0] >= '0' && character[0] <= '9';
}

const std::map<std::string_view, TextMethod>& text_methods() {
  static const std::map<std::string_view, TextMethod> methods = {{"strip", strip<Side::both>},
                                                                 {"lstrip", strip<Side::left>},
                                                                 {"rstrip", strip<Side::right>},
                                                                 {"split", split_text<false>},
                                                                 {"rsplit", split_text<true>},
                                                                 {"splitlines", split_lines},
                                                                 {"startswith", affix_test<false>},
                                                                 {"endswith", affix_test<true>},
                                                                 {"removeprefix", remove_affix<false>},
                                                                 {"removesuffix", remove_affix<true>},
                                                                 {"upper", change_case<LetterCase::upper>},
                                                                 {"lower", change_case<LetterCase::lower>},
                                                                 {"capitalize", capitalize},
                                                                 {"title", title},
                                                                 {"replace", replace},
                                                                 {"join", join},
                                                                 {"find", find_text<false, false>},
                                                                 {"rfind", find_text<true, false>},
                                                                 {"index", find_text<false, true>},
                                                                 {"rindex", find_text<true, true>},
                                                                 {"count", count},
                                                                 {"format", format},
                                                                 {"partition", partition<false>},
                                                                 {"rpartition", partition<true>},
                                                                 {"isspace", all_characters<is_space>},
                                                                 {"isdigit", all_characters<is_digit>}};
  return methods;
}

Value dict_method(Runtime& runtime, const Value& self, const std::string& name, const Arguments& arguments) {
  const Dict& dict = *self.dict();
  if (name == "get") {
    const Parameters given(arguments, {"key", "default"}, 1);
    runtime.spend(dict.entries.size() / 4);
    if (!hashable(given[0])) wrong("unhashable type: {}", type_name(given[0]));
    const Value* value = find(dict, given[0]);
    return value != nullptr ? *value : given.has(1) ? given[1] : Value(None{});
  }
  const Parameters none(arguments, {});
  if (name == "items") return dict_view(runtime, dict, SequenceKind::items);
  if (name == "keys") return dict_view(runtime, dict, SequenceKind::keys);
  if (name == "values") return dict_view(runtime, dict, SequenceKind::values);
  if (name == "copy") return self;
  unsupported("method {} of a dict is not supported", name);
}

Value list_method(Runtime& runtime, const Value& self, const std::string& name, const Arguments& arguments) {
  const Sequence& sequence = *self.sequence();
  const bool counts = name == "count";
  const bool known = counts || name == "index";
  if (!known || (sequence.kind != SequenceKind::list && sequence.kind != SequenceKind::tuple)) {
    unsupported("method {} of a {} is not supported (lists and dicts do not change)", name, type_name(self));
  }
  const Parameters given(arguments, {"value"}, 1);
  runtime.spend(weight_of(self));
  const auto same = [&](const Value& item) { return equal(item, given[0]); };
  if (counts) return Value(std::int64_t{std::count_if(sequence.items.begin(), sequence.items.end(), same)});
  const auto at = std::find_if(sequence.items.begin(), sequence.items.end(), same);
  if (at == sequence.items.end()) wrong("index: the value is not in the list");
  return Value(std::int64_t{at - sequence.items.begin()});
}

Value loop_method(LoopState& loop, const std::string& name, const Arguments& arguments) {
  if (!arguments.named.empty()) wrong("loop.{}: takes no named arguments", name);
  return name == "cycle" ? loop.cycle(arguments.positional) : loop.changed(arguments.positional);
}

}  // namespace

Value dict_view(Runtime& runtime, const Dict& dict, SequenceKind kind) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) {
    items.push_back(kind == SequenceKind::keys     ? key
                    : kind == SequenceKind::values ? value
                                                   : runtime.list({key, value}, SequenceKind::tuple));
  }
  return runtime.list(std::move(items), kind);
}

Value call_method(Runtime& runtime, const Value& self, const std::string& name, const Arguments& arguments) {
  if (const MarkedText* text = self.text()) {
    const auto method = text_methods().find(name);
    if (method == text_methods().end()) unsupported("method {} of a string is not supported", name);
    runtime.spend(1 + text->size() / 64);
    return method->second(runtime, *text, arguments);
  }
  if (self.dict() != nullptr) return dict_method(runtime, self, name, arguments);
  if (self.sequence() != nullptr) return list_method(runtime, self, name, arguments);
  if (const LoopPtr* loop = self.as<LoopPtr>()) return loop_method(**loop, name, arguments);
  unsupported("method {} of a {} is not supported", name, type_name(self));
}

}  // namespace tandem::jinja
