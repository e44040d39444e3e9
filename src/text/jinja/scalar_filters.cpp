// Filters on numbers and any value.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "src/text/jinja/filters.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/text_tools.h"

namespace tandem::jinja {
namespace {

// The text of a number as Python's int() and float() read it: blanks around it and single underscores between digits.
std::optional<std::string> number_text(const MarkedText& text) {
  std::string digits = stripped(text, Side::both).bytes(), out;
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (digits.starts_with('-') && text.bytes().find('+') != std::string::npos &&
      text.bytes().find('e') == std::string::npos)
    return {};
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < digits.size() && digits[at] >= '0' && digits[at] <= '9'; };
    if (static_cast<unsigned char>(digits[i]) >= 0x80) unsupported("numbers in digits beyond ASCII are not supported");
    if (digits[i] != '_') {
      out += digits[i];
    } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
      return {};
    }
  }
  return out;
}

std::optional<double> parse_real(const MarkedText& text) {
  const std::optional<std::string> digits = number_text(text);
  if (!digits || digits->find_first_of("xXpP(") != std::string::npos) return {};
  double value = 0;
  const char* end = digits->data() + digits->size();
  const auto parsed = std::from_chars(digits->data(), end, value);
  if (parsed.ec == std::errc::result_out_of_range) unsupported("expected a number in a float's range, got {}", *digits);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return value;
}

std::optional<std::int64_t> whole_part(double value) {
  if (std::isnan(value) || std::isinf(value)) return {};
  if (std::abs(value) >= 0x1p63) unsupported("expected integers below 2^63");
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> parse_integer(const MarkedText& text) {
  if (const std::optional<std::string> digits = number_text(text)) {
    std::int64_t value = 0;
    const char* end = digits->data() + digits->size();
    const auto parsed = std::from_chars(digits->data(), end, value);
    if (parsed.ptr == end && parsed.ec == std::errc::result_out_of_range) unsupported("expected integers below 2^63");
    if (parsed.ptr == end && parsed.ec == std::errc()) return value;
  }
  const std::optional<double> real = parse_real(text);
  return real ? whole_part(*real) : std::nullopt;
}

Value to_int(Runtime&, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"default", "base"});
  if (given.integer_or(1, 10) != 10) unsupported("int: a base other than 10 is not supported");
  std::optional<std::int64_t> value;
  if (const Undefined* missing = subject.as<Undefined>())
    wrong("{}", missing->why ? *missing->why : "a value is undefined");
  if (subject.text() != nullptr) value = parse_integer(*subject.text());
  if (is_integer(subject)) value = integer_of(subject);
  if (const double* real = subject.as<double>()) {
    if (std::isinf(*real)) wrong("int: infinity is no integer");
    value = whole_part(*real);
  }
  return value ? Value(*value) : given.has(0) ? given[0] : Value(std::int64_t{0});
}

Value to_float(Runtime&, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"default"});
  if (const Undefined* missing = subject.as<Undefined>())
    wrong("{}", missing->why ? *missing->why : "a value is undefined");
  if (is_number(subject)) return Value(number_of(subject));
  const std::optional<double> value = subject.text() != nullptr ? parse_real(*subject.text()) : std::nullopt;
  return value ? Value(*value) : given.has(0) ? given[0] : Value(0.0);
}

Value absolute(Runtime&, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {});
  if (const double* real = subject.as<double>()) return Value(std::abs(*real));
  if (!is_integer(subject)) wrong("abs: expected a number, got {}", type_name(subject));
  return integer_of(subject) < 0 ? negative(subject) : Value(integer_of(subject));
}

// The nearest number of `places` decimals, as it would be written: the conversion of libc rounds exactly, to even.
double rounded(double value, int places) { return std::strtod(fmt::format("{:.{}f}", value, places).c_str(), nullptr); }

Value round(Runtime&, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"precision", "method"});
  const std::int64_t places = given.integer_or(0, 0);
  const std::string method = given.has(1) ? given.text(1).bytes() : "common";
  if (!is_number(subject)) wrong("round: expected a number, got {}", type_name(subject));
  if (places < 0 || places > 100) unsupported("round: expected a precision of 0..100, got {}", places);
  if (method == "common") {
    if (is_integer(subject)) return Value(integer_of(subject));
    if (!std::isfinite(number_of(subject))) return subject;
    return Value(rounded(number_of(subject), static_cast<int>(places)));
  }
  if (method != "floor" && method != "ceil") wrong("round: method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(places)), scaled = number_of(subject) * scale;
  return Value((method == "floor" ? std::floor(scaled) : std::ceil(scaled)) / scale);
}

Value fallback(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"default_value", "boolean"});
  const bool replace = subject.is<Undefined>() || (given.truth_or(1, false) && !truth(subject));
  if (!replace) return subject;
  return given.has(0) ? given[0] : runtime.text({});
}

Value attr(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Parameters given(arguments, {"name"}, 1);
  if (subject.dict() != nullptr) unsupported("attr of a dict is not supported");
  return attribute(runtime, subject, given.text(0).bytes());
}

}  // namespace

std::vector<NamedFilter> scalar_filters() {
  return {{"int", to_int}, {"float", to_float},   {"abs", absolute}, {"round", round},
          {"d", fallback}, {"default", fallback}, {"attr", attr}};
}

Filter find_filter(std::string_view name) {
  static const std::map<std::string_view, Filter> filters = [] {
    std::map<std::string_view, Filter> all;
    for (const auto& table : {text_filters(), list_filters(), selection_filters(), scalar_filters()}) {
      for (const NamedFilter& entry : table) all.emplace(entry.name, entry.filter);
    }
    return all;
  }();
  const auto found = filters.find(name);
  return found == filters.end() ? nullptr : found->second;
}

}  // namespace tandem::jinja
