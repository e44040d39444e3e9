// Filters on text.
#include <algorithm>

#include "src/text/jinja/filters.h"
#include "src/text/jinja/json_text.h"
#include "src/text/jinja/text_tools.h"
#include "src/text/jinja/unicode.h"

namespace tandem::jinja {
namespace {

// What a filter on text sees of its subject; what `safe` returned would have to stay marked as such.
MarkedText subject_text(Runtime& runtime, const Value& subject) {
  if (subject.is<Markup>()) unsupported("a filter on what safe or escape returned is not supported");
  MarkedText text = runtime.to_text(subject);
  runtime.spend(text.size() / 64);
  return text;
}

Value trim(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"chars"});
  std::optional<std::string> characters;
  if (given.has(0) && !given[0].is<None>()) characters = given.text(0).bytes();
  return runtime.text(stripped(subject_text(runtime, subject), Side::both, characters));
}

template <LetterCase wanted>
Value change_case(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  const MarkedText text = subject_text(runtime, subject);
  runtime.spend(text.size() / 8);
  return runtime.text(in_case(text, wanted));
}

Value capitalize(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  return runtime.text(capitalized(subject_text(runtime, subject)));
}

// Jinja's own rule for title: a word begins after a blank, a dash or an opening bracket.
Value title(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  const MarkedText text = subject_text(runtime, subject);
  const std::vector<std::size_t> starts = character_starts(text.bytes());
  MarkedText out;
  bool begins = true;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const std::string_view character = std::string_view(text.bytes()).substr(starts[i], starts[i + 1] - starts[i]);
    out.append(in_case(character, begins ? LetterCase::upper : LetterCase::lower), text.input_at(starts[i]));
    begins = is_space(character) || std::string_view("-({[<").find(character) != std::string_view::npos;
  }
  return runtime.text(std::move(out));
}

Value replace(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"old", "new", "count"}, 2);
  const MarkedText text = subject_text(runtime, subject);
  const MarkedText from = runtime.to_text(given[0]), to = runtime.to_text(given[1]);
  runtime.spend_search(text, from);
  const bool all = !given.has(2) || given[2].is<None>();
  return runtime.text(replaced(runtime, text, from, to, all ? -1 : given.integer_or(2, -1)));
}

Value indent(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"width", "first", "blank"});
  if (subject.text() == nullptr) wrong("indent: expected a string, got {}", type_name(subject));
  MarkedText margin;
  if (given.has(0) && given[0].text() != nullptr) {
    margin = given.text(0);
  } else {
    margin = runtime.blanks("indent", given.integer_or(0, 4));
  }
  const bool blank = given.truth_or(2, false);
  MarkedText whole = *subject.text();
  runtime.spend(whole.size() / 64);
  whole.append("\n", false);
  MarkedText out;
  bool first = true;
  for (const MarkedText& line : lines(runtime, whole)) {
    if (!first) out.append("\n", false);
    const bool indents = first ? given.truth_or(1, false) : blank || !line.empty();
    if (indents) out.append(margin);
    first = false;
    out.append(line);
    runtime.require_text(out.size());
  }
  return runtime.text(std::move(out));
}

Value string(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  if (subject.is<Markup>() || subject.text() != nullptr) return subject;
  return runtime.text(runtime.to_text(subject));
}

Value safe(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  return markup(runtime, runtime.to_text(subject));
}

Value escape(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  if (subject.is<Markup>()) return subject;
  return markup(runtime, escaped(subject_text(runtime, subject)));
}

}  // namespace

std::vector<NamedFilter> text_filters() {
  return {{"trim", trim},       {"upper", change_case<LetterCase::upper>},
          {"title", title},     {"lower", change_case<LetterCase::lower>},
          {"indent", indent},   {"capitalize", capitalize},
          {"replace", replace}, {"string", string},
          {"safe", safe},       {"escape", escape},
          {"e", escape},        {"tojson", to_json}};
}

}  // namespace tandem::jinja
