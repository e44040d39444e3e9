#include "src/sample/grammar/schema_keywords.h"

#include <algorithm>
#include <array>

#include "src/base/error.h"
#include "src/base/option_text.h"
#include "src/sample/grammar/expression.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

enum class Form {
  annotation,
  schema,
  schema_list,  // not empty
  schema_map,
  reference,
  types,
  values,  // not empty
  anything,
  number,
  multiple,
  count,  // 0..kMostRepetitions
  text,
  names,
  no_schema_list,  // a schema, where older drafts had lists
  only_false       // uniqueItems: false says nothing
};

struct Keyword {
  std::string_view name;
  Form form;
};

constexpr std::array kKeywords{Keyword{"title", Form::annotation},
                               Keyword{"description", Form::annotation},
                               Keyword{"default", Form::annotation},
                               Keyword{"examples", Form::annotation},
                               Keyword{"$schema", Form::annotation},
                               Keyword{"$id", Form::annotation},
                               Keyword{"$comment", Form::annotation},
                               Keyword{"deprecated", Form::annotation},
                               Keyword{"readOnly", Form::annotation},
                               Keyword{"writeOnly", Form::annotation},
                               Keyword{"$defs", Form::annotation},
                               Keyword{"definitions", Form::annotation},
                               Keyword{"$ref", Form::reference},
                               Keyword{"allOf", Form::schema_list},
                               Keyword{"anyOf", Form::schema_list},
                               Keyword{"oneOf", Form::schema_list},
                               Keyword{"type", Form::types},
                               Keyword{"enum", Form::values},
                               Keyword{"const", Form::anything},
                               Keyword{"minimum", Form::number},
                               Keyword{"maximum", Form::number},
                               Keyword{"exclusiveMinimum", Form::number},
                               Keyword{"exclusiveMaximum", Form::number},
                               Keyword{"multipleOf", Form::multiple},
                               Keyword{"minLength", Form::count},
                               Keyword{"maxLength", Form::count},
                               Keyword{"pattern", Form::text},
                               Keyword{"format", Form::text},
                               Keyword{"prefixItems", Form::schema_list},
                               Keyword{"items", Form::no_schema_list},
                               Keyword{"minItems", Form::count},
                               Keyword{"maxItems", Form::count},
                               Keyword{"uniqueItems", Form::only_false},
                               Keyword{"properties", Form::schema_map},
                               Keyword{"required", Form::names},
                               Keyword{"additionalProperties", Form::schema},
                               Keyword{"minProperties", Form::count},
                               Keyword{"maxProperties", Form::count}};

constexpr std::array<std::string_view, 7> kTypes{"null", "boolean", "integer", "number", "string", "array", "object"};

const Keyword* find_keyword(std::string_view name) {
  const auto* found =
      std::find_if(kKeywords.begin(), kKeywords.end(), [&](const Keyword& k) { return k.name == name; });
  return found == kKeywords.end() ? nullptr : found;
}

[[noreturn]] void refuse_keyword(const std::string& place, const std::string& name) {
  std::vector<std::string> known;
  for (const Keyword& keyword : kKeywords) known.emplace_back(keyword.name);
  const auto near = nearest_name(name, known);
  fail(ErrorKind::config, "{}: this keyword is not supported{}", place,
       near ? fmt::format(" (did you mean {}?)", *near) : "");
}

bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }

void expect(bool right, const std::string& place, std::string_view wanted, const Json& got) {
  if (right) return;
  std::string text = got.dump();
  if (text.size() > 40) text = text.substr(0, valid_utf8_prefix(text.substr(0, 37))) + "...";
  fail(ErrorKind::config, "{}: expected {}, got {}", place, wanted, text);
}

void check_count(const Json& value, const std::string& place) {
  // 2.0 is a whole number to JSON schema.
  const bool whole =
      value.is_number() && value.get<double>() >= 0 &&
      value.get<double>() == static_cast<double>(static_cast<std::int64_t>(std::min(value.get<double>(), 1e15)));
  expect(whole, place, "a whole number from 0", value);
  if (value.get<double>() > kMostRepetitions) {
    fail(ErrorKind::config, "{}: {} is above the limit of {}", place, value.dump(), kMostRepetitions);
  }
}

void check_types(const Json& value, const std::string& place) {
  const auto known = [](const Json& name) {
    return name.is_string() &&
           std::find(kTypes.begin(), kTypes.end(), name.get_ref<const std::string&>()) != kTypes.end();
  };
  constexpr std::string_view kWanted = "null, boolean, integer, number, string, array, object or a list of these";
  if (!value.is_array()) return expect(known(value), place, kWanted, value);
  expect(!value.empty() && std::all_of(value.begin(), value.end(), known), place, kWanted, value);
}

void check_multiple(const Json& value, const std::string& place) {
  expect(value.is_number() && value.get<double>() > 0, place, "a number above 0", value);
  const double multiple = value.get<double>();
  if (multiple < 1 || multiple > 1e15 || multiple != static_cast<double>(static_cast<std::int64_t>(multiple))) {
    fail(ErrorKind::config, "{}: {} is not supported: only whole multiples are exact", place, value.dump());
  }
}

void check_value(const Keyword& keyword, const Json& value, const std::string& place) {
  const auto text = [](const Json& item) { return item.is_string(); };
  switch (keyword.form) {
    case Form::annotation:
    case Form::anything:
      return;
    case Form::schema:
      return expect(is_schema(value), place, "a schema", value);
    case Form::no_schema_list:
      if (value.is_array()) fail(ErrorKind::config, "{}: a list is not supported here: use prefixItems", place);
      return expect(is_schema(value), place, "a schema", value);
    case Form::schema_list:
      return expect(value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_schema), place,
                    "a list of schemas that is not empty", value);
    case Form::schema_map:
      return expect(value.is_object() && std::all_of(value.begin(), value.end(), is_schema), place,
                    "an object of schemas", value);
    case Form::reference:
    case Form::text:
      return expect(value.is_string(), place, "a text", value);
    case Form::types:
      return check_types(value, place);
    case Form::values:
      return expect(value.is_array() && !value.empty(), place, "a list of values that is not empty", value);
    case Form::number:
      return expect(value.is_number(), place, "a number", value);
    case Form::multiple:
      return check_multiple(value, place);
    case Form::count:
      return check_count(value, place);
    case Form::names:
      return expect(value.is_array() && std::all_of(value.begin(), value.end(), text), place, "a list of names", value);
    case Form::only_false:
      if (value != Json(false)) fail(ErrorKind::config, "{}: only false is supported", place);
      return;
  }
}

}  // namespace

void check_keywords(const Json& schema, const std::string& pointer) {
  expect(is_schema(schema), pointer, "a schema: an object, true or false", schema);
  if (!schema.is_object()) return;
  for (const auto& [name, value] : schema.items()) {
    const std::string place = pointer + "/" + pointer_step(name);
    const Keyword* keyword = find_keyword(name);
    if (keyword == nullptr) refuse_keyword(place, name);
    check_value(*keyword, value, place);
  }
}

bool is_annotation(std::string_view name) {
  const Keyword* keyword = find_keyword(name);
  return keyword != nullptr && (keyword->form == Form::annotation || keyword->form == Form::only_false);
}

std::string pointer_step(std::string_view name) {
  std::string step;
  for (const char byte : name) {
    if (byte == '~') {
      step += "~0";
    } else if (byte == '/') {
      step += "~1";
    } else {
      step += byte;
    }
  }
  return step;
}

}  // namespace tandem
