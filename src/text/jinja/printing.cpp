// Python's str() and repr() of values.
#include <array>
#include <charconv>
#include <cmath>

#include "src/text/jinja/json_text.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace tandem::jinja {
namespace {

std::string escaped(std::string_view character) {
  const Utf8Step step = utf8_step(character);
  if (!step.valid) unsupported("printing a list of text that is not UTF-8 is not supported");
  const auto code = static_cast<std::uint32_t>(step.character);
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

MarkedText quoted_text(const MarkedText& text) {
  const std::string& bytes = text.bytes();
  const bool doubled = bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = doubled ? '"' : '\'';
  MarkedText out(std::string(1, quote), false);
  const std::vector<std::size_t> starts = character_starts(bytes);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const std::string_view character = std::string_view(bytes).substr(starts[i], starts[i + 1] - starts[i]);
    const bool input = text.input_at(starts[i]);
    if (character[0] == quote || character[0] == '\\') {
      out.append("\\", input);
      out.append(character, input);
    } else {
      out.append(is_printable(character) ? std::string(character) : escaped(character), input);
    }
  }
  out.append(std::string(1, quote), false);
  return out;
}

void append_items(MarkedText& out, const Sequence& sequence, Runtime& runtime) {
  bool first = true;
  for (const Value& item : sequence.items) {
    if (!first) out.append(", ", false);
    first = false;
    out.append(runtime.quoted(item));
  }
}

MarkedText quoted_sequence(const Sequence& sequence, Runtime& runtime) {
  MarkedText out;
  switch (sequence.kind) {
    case SequenceKind::list:
      out.append("[", false);
      append_items(out, sequence, runtime);
      out.append("]", false);
      return out;
    case SequenceKind::tuple:
      out.append("(", false);
      append_items(out, sequence, runtime);
      out.append(sequence.items.size() == 1 ? ",)" : ")", false);
      return out;
    case SequenceKind::keys:
    case SequenceKind::values:
    case SequenceKind::items:
      out.append(sequence.kind == SequenceKind::keys     ? "dict_keys(["
                 : sequence.kind == SequenceKind::values ? "dict_values(["
                                                         : "dict_items([",
                 false);
      append_items(out, sequence, runtime);
      out.append("])", false);
      return out;
    case SequenceKind::range:
      return {sequence.label, false};
  }
  return out;
}

MarkedText quoted_dict(const Dict& dict, Runtime& runtime) {
  MarkedText out("{", false);
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) out.append(", ", false);
    first = false;
    out.append(runtime.quoted(key));
    out.append(": ", false);
    out.append(runtime.quoted(value));
  }
  out.append("}", false);
  return out;
}

std::string scalar(const Value& value) {
  if (value.is<None>()) return "None";
  if (const bool* flag = value.as<bool>()) return *flag ? "True" : "False";
  if (const std::int64_t* integer = value.as<std::int64_t>()) return std::to_string(*integer);
  if (const double* real = value.as<double>()) return float_text(*real);
  if (value.generator() != nullptr) unsupported("printing a generator is not supported; make it a list first");
  unsupported("printing a value of type {} is not supported", type_name(value));
}

}  // namespace

// The shortest digits that read back as the same number, laid out as Python does.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t mark = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(mark + 1)).c_str());
  const bool negative = text[0] == '-';
  std::string digits;
  for (const char c : text.substr(negative, mark - negative)) {
    if (c != '.') digits += c;
  }
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out.append(1, '.').append(digits, 1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  const int point = exponent + 1;  // digits before the point
  if (point <= 0) return out.append("0.").append(static_cast<std::size_t>(-point), '0').append(digits);
  const auto whole = static_cast<std::size_t>(point);
  if (digits.size() <= whole) return out.append(digits).append(whole - digits.size(), '0').append(".0");
  return out.append(digits, 0, whole).append(1, '.').append(digits, whole);
}

MarkedText Runtime::to_text(const Value& value) {
  if (const MarkedText* text = value.text()) return *text;
  if (const Markup* markup = value.as<Markup>()) return *markup->text;
  if (value.is<Undefined>()) return {};
  return quoted(value);
}

MarkedText Runtime::quoted(const Value& value) {
  spend(1);
  if (const MarkedText* text = value.text()) {
    spend(text->size() / 8);
    return quoted_text(*text);
  }
  if (const Sequence* sequence = value.sequence()) return quoted_sequence(*sequence, *this);
  if (const Dict* dict = value.dict()) return quoted_dict(*dict, *this);
  if (value.is<Undefined>()) return {"Undefined", false};
  return {scalar(value), false};
}

}  // namespace tandem::jinja
