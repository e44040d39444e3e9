#include "src/sample/grammar/json_rules.h"

#include <utility>

#include "src/base/error.h"
#include "src/sample/grammar/code_points.h"
#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/unicode_escapes.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

namespace ex = expressions;

constexpr int kMostIndent = 32;
constexpr std::size_t kMostRules = 20'000;
constexpr CodePointRange kDigits{U'0', U'9'};

// What may follow a backslash for each character that has such an escape.
constexpr std::pair<char32_t, char32_t> kShortEscapes[] = {{U'"', U'"'},  {U'\\', U'\\'}, {U'/', U'/'},  {U'\b', U'b'},
                                                           {U'\f', U'f'}, {U'\n', U'n'},  {U'\r', U'r'}, {U'\t', U't'}};

// What JSON lets stand for itself in a string.
const CodePoints& unescaped() {
  static const CodePoints kUnescaped = complement({{0, 0x1F}, {U'"', U'"'}, {U'\\', U'\\'}});
  return kUnescaped;
}

// What may be spelt \uXXXX.
const CodePoints& hex_escaped() {
  static const CodePoints kEscaped = complement({{U' ', U'~'}});
  return kEscaped;
}

Expression digits(int least, int most) { return ex::repeat(ex::characters({kDigits}), least, most); }

}  // namespace

int JsonRules::add_rule(std::string name) {
  if (grammar_.rules.size() == kMostRules) fail(ErrorKind::config, "#: more than {} rules", kMostRules);
  grammar_.rules.push_back({std::move(name), ex::choice({})});
  return static_cast<int>(grammar_.rules.size()) - 1;
}

void JsonRules::set_body(int rule, Expression body) {
  grammar_.rules[static_cast<std::size_t>(rule)].body = std::move(body);
}

Expression JsonRules::shared(const std::string& name, const std::function<Expression()>& body) {
  const auto known = shared_.find(name);
  if (known != shared_.end()) return ex::rule(known->second);
  const int rule = add_rule(name);
  shared_.emplace(name, rule);
  set_body(rule, body());
  return ex::rule(rule);
}

Expression JsonRules::any_value() {
  return shared("value", [this] { return ex::choice({object(), array(), string(), number(), boolean(), null()}); });
}

Expression JsonRules::object() {
  return shared("object", [this] {
    const Expression member = ex::sequence({string(), colon(), any_value()});
    return enclosed('{', ex::sequence({member, ex::repeat(ex::sequence({comma(), member}), 0, -1)}), true, '}');
  });
}

Expression JsonRules::array() {
  return shared("array", [this] {
    return enclosed('[', ex::sequence({any_value(), ex::repeat(ex::sequence({comma(), any_value()}), 0, -1)}), true,
                    ']');
  });
}

Expression JsonRules::string() {
  return shared("string", [this] { return quoted(ex::repeat(character(), 0, -1)); });
}

Expression JsonRules::number() {
  return shared("number", [] {
    const Expression whole =
        ex::choice({ex::literal("0"), ex::sequence({ex::characters({{U'1', U'9'}}), digits(0, -1)})});
    const Expression fraction = ex::sequence({ex::literal("."), digits(1, -1)});
    const Expression exponent =
        ex::sequence({ex::characters({{U'E', U'E'}, {U'e', U'e'}}),
                      ex::optional(ex::characters({{U'+', U'+'}, {U'-', U'-'}})), digits(1, 2)});
    return ex::sequence({ex::optional(ex::literal("-")), whole, ex::optional(fraction), ex::optional(exponent)});
  });
}

Expression JsonRules::integer() {
  return shared("integer", [] {
    return ex::choice({ex::literal("0"),
                       ex::sequence({ex::optional(ex::literal("-")), ex::characters({{U'1', U'9'}}), digits(0, -1)})});
  });
}

Expression JsonRules::boolean() { return ex::choice({ex::literal("true"), ex::literal("false")}); }

Expression JsonRules::null() { return ex::literal("null"); }

Expression JsonRules::gap() {
  return shared("gap", [] {
    return ex::choice({ex::literal(""), ex::literal(" "),
                       ex::sequence({ex::literal("\n"), ex::repeat(ex::literal(" "), 0, kMostIndent)})});
  });
}

Expression JsonRules::comma() { return ex::sequence({ex::literal(","), gap()}); }

Expression JsonRules::colon() { return ex::sequence({ex::literal(":"), ex::optional(ex::literal(" "))}); }

Expression JsonRules::enclosed(char open, Expression inside, bool may_be_empty, char close) {
  Expression filled = ex::sequence({gap(), std::move(inside), gap()});
  return ex::sequence({ex::literal(std::string(1, open)),
                       may_be_empty ? ex::optional(std::move(filled)) : std::move(filled),
                       ex::literal(std::string(1, close))});
}

Expression JsonRules::unicode_escape() {
  return shared("unicode escape", [] { return unicode_escapes(hex_escaped()); });
}

Expression JsonRules::character() {
  return shared("character", [this] { return character_in(complement({})); });
}

Expression JsonRules::character_in(const std::vector<CodePointRange>& ranges) {
  const CodePoints set = normalised(ranges);
  std::vector<Expression> spellings;
  CodePoints plain = intersection(set, unescaped());
  if (!plain.empty()) spellings.push_back(ex::characters(std::move(plain)));
  CodePoints letters;
  for (const auto& [character, letter] : kShortEscapes) {
    if (contains(set, character)) letters.push_back({letter, letter});
  }
  if (!letters.empty()) {
    spellings.push_back(ex::sequence({ex::literal("\\"), ex::characters(normalised(letters))}));
  }
  CodePoints escaped = intersection(set, hex_escaped());
  if (difference(hex_escaped(), escaped).empty()) {
    spellings.push_back(unicode_escape());
  } else if (!escaped.empty()) {
    spellings.push_back(unicode_escapes(escaped));
  }
  return ex::choice(std::move(spellings));
}

Expression JsonRules::escaped_text(std::string_view text) {
  std::vector<Expression> parts;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const char32_t character = step.character;
    const bool only_itself = contains(unescaped(), character) && character < 0x7F && character != U'/';
    parts.push_back(only_itself ? ex::literal(std::string(text.substr(0, step.length)))
                                : character_in({{character, character}}));
    text.remove_prefix(step.length);
  }
  return ex::sequence(std::move(parts));
}

Expression JsonRules::escaped(const Expression& text) {
  switch (text.kind) {
    case Expression::Kind::literal:
      return escaped_text(text.bytes);
    case Expression::Kind::characters: {
      const CodePoints set = text.negated ? complement(text.ranges) : normalised(text.ranges);
      return complement(set).empty() ? character() : character_in(set);
    }
    default:
      break;
  }
  Expression result = text;
  for (Expression& part : result.parts) part = escaped(part);
  return result;
}

Expression JsonRules::quoted(Expression escaped_text) {
  return ex::sequence({ex::literal("\""), std::move(escaped_text), ex::literal("\"")});
}

Expression JsonRules::quoted_text(std::string_view text) { return quoted(escaped_text(text)); }

Expression JsonRules::exactly(const nlohmann::ordered_json& value) {
  if (value.is_string()) return quoted_text(value.get_ref<const std::string&>());
  if (!value.is_structured()) return ex::literal(value.dump());
  const bool object = value.is_object();
  if (value.empty()) return ex::literal(object ? "{}" : "[]");
  std::vector<Expression> inside;
  for (const auto& item : value.items()) {
    if (!inside.empty()) inside.push_back(comma());
    if (object) {
      inside.push_back(quoted_text(item.key()));
      inside.push_back(colon());
    }
    inside.push_back(exactly(item.value()));
  }
  return enclosed(object ? '{' : '[', ex::sequence(std::move(inside)), false, object ? '}' : ']');
}

}  // namespace tandem
