#include "src/sample/grammar/schema_shape.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

unsigned type_named(const std::string& name) {
  if (name == "null") return kNullType;
  if (name == "boolean") return kBooleanType;
  if (name == "integer") return kWholeType;
  if (name == "number") return kNumberTypes;
  if (name == "string") return kStringType;
  return name == "array" ? kArrayType : kObjectType;
}

unsigned types_named(const Json& names) {
  if (names.is_string()) return type_named(names.get_ref<const std::string&>());
  unsigned types = 0;
  for (const Json& name : names) types |= type_named(name.get_ref<const std::string&>());
  return types;
}

void keep_values(Shape& shape, const std::vector<Json>& allowed) {
  if (!shape.values) {
    shape.values = allowed;
    return;
  }
  // As JSON schema compares: 1 and 1.0 are equal, and the order of properties is not looked at.
  const std::set<nlohmann::json> wanted(allowed.begin(), allowed.end());
  std::erase_if(*shape.values, [&](const Json& value) { return !wanted.contains(nlohmann::json(value)); });
}

// Keeps the tighter of two bounds; `direction` is 1 for a minimum, -1 for a maximum.
void tighten(std::optional<NumberBound>& bound, NumberBound other, int direction) {
  const int order = bound ? compare(other.value, bound->value) * direction : 1;
  if (order > 0) {
    bound = std::move(other);
  } else if (order == 0) {
    bound->exclusive = bound->exclusive || other.exclusive;
  }
}

std::int64_t common_multiple(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = b / std::gcd(a, b);
  return a > std::numeric_limits<std::int64_t>::max() / rest ? std::numeric_limits<std::int64_t>::max() : a * rest;
}

void read_number(NumberRange& numbers, const std::string& keyword, const Json& value) {
  if (keyword == "multipleOf") {
    numbers.multiple_of = common_multiple(numbers.multiple_of, static_cast<std::int64_t>(value.get<double>()));
    numbers.whole = true;
    return;
  }
  const bool exclusive = keyword.rfind("exclusive", 0) == 0;
  if (keyword == "minimum" || keyword == "exclusiveMinimum") {
    tighten(numbers.minimum, {decimal_of(value), exclusive}, 1);
  } else {
    tighten(numbers.maximum, {decimal_of(value), exclusive}, -1);
  }
}

// minLength and the like: `keyword` begins with "min" or "max".
void read_count(TextLength& counts, const std::string& keyword, const Json& value) {
  const auto count = static_cast<std::int64_t>(value.get<double>());
  if (keyword.rfind("min", 0) == 0) {
    counts.least = std::max(counts.least, count);
  } else {
    counts.most = counts.most < 0 ? count : std::min(counts.most, count);
  }
}

void add_once(std::vector<PlacedText>& texts, const Json& value, std::string place) {
  const std::string& text = value.get_ref<const std::string&>();
  const bool known =
      std::any_of(texts.begin(), texts.end(), [&](const PlacedText& other) { return other.text == text; });
  if (!known) texts.push_back({text, std::move(place)});
}

template <typename T>
void add_once(std::vector<T>& all, const T& value) {
  if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
}

constexpr std::array<std::string_view, 5> kNumberKeywords{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                                          "multipleOf"};

bool is_number_keyword(std::string_view keyword) {
  return std::find(kNumberKeywords.begin(), kNumberKeywords.end(), keyword) != kNumberKeywords.end();
}

void read_keyword(Shape& shape, int node, const std::string& pointer, const std::string& keyword, const Json& value) {
  const std::string place = pointer + "/" + keyword;
  if (keyword == "type") {
    shape.types &= types_named(value);
  } else if (keyword == "enum") {
    keep_values(shape, value.get<std::vector<Json>>());
  } else if (keyword == "const") {
    keep_values(shape, {value});
  } else if (is_number_keyword(keyword)) {
    shape.number_place = place;
    read_number(shape.numbers, keyword, value);
  } else if (keyword == "pattern") {
    shape.string_place = place;
    add_once(shape.patterns, value, place);
  } else if (keyword == "format") {
    shape.string_place = place;
    add_once(shape.formats, value, place);
  } else if (keyword == "minLength" || keyword == "maxLength") {
    shape.string_place = place;
    read_count(shape.length, keyword, value);
  } else if (keyword == "prefixItems" || keyword == "items") {
    shape.array_place = place;
    add_once(shape.item_nodes, node);
  } else if (keyword == "minItems" || keyword == "maxItems") {
    shape.array_place = place;
    read_count(shape.items, keyword, value);
  } else if (keyword == "required") {
    shape.object_place = place;
    for (const Json& name : value) add_once(shape.required, name.get<std::string>());
  } else if (keyword == "properties" || keyword == "additionalProperties") {
    shape.object_place = place;
    add_once(shape.property_nodes, node);
  } else if (keyword == "minProperties" || keyword == "maxProperties") {
    shape.object_place = place;
    read_count(shape.properties, keyword, value);
  }
}

bool in_range(const NumberRange& range, const Json& value) {
  const Decimal number = decimal_of(value);
  if (range.minimum) {
    const int order = compare(number, range.minimum->value);
    if (order < 0 || (order == 0 && range.minimum->exclusive)) return false;
  }
  if (range.maximum) {
    const int order = compare(number, range.maximum->value);
    if (order > 0 || (order == 0 && range.maximum->exclusive)) return false;
  }
  return range.multiple_of == 1 || std::fmod(value.get<double>(), static_cast<double>(range.multiple_of)) == 0;
}

bool counts_fit(std::size_t count, TextLength counts) {
  const auto own = static_cast<std::int64_t>(count);
  return own >= counts.least && (counts.most < 0 || own <= counts.most);
}

}  // namespace

Shape shape_of(SchemaDocument& document, const Conjunction& alternative) {
  Shape shape;
  for (const int node : alternative) {
    for (const auto& item : document.schema(node).items()) {
      read_keyword(shape, node, document.pointer(node), item.key(), item.value());
    }
  }
  if (shape.numbers.multiple_of != 1 || shape.numbers.whole) shape.types &= ~kFractionType;
  if ((shape.types & kNumberTypes) == kWholeType) shape.numbers.whole = true;
  return shape;
}

unsigned type_of(const Json& value) {
  if (value.is_null()) return kNullType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_number_float()) {
    return value.get<double>() == std::floor(value.get<double>()) ? kWholeType : kFractionType;
  }
  if (value.is_number()) return kWholeType;
  if (value.is_string()) return kStringType;
  return value.is_array() ? kArrayType : kObjectType;
}

std::optional<bool> admits(const Shape& shape, const Json& value) {
  const unsigned type = type_of(value);
  if ((shape.types & type) == 0) return false;
  if ((type & kNumberTypes) != 0) return in_range(shape.numbers, value);
  if (type == kStringType) {
    const std::string& text = value.get_ref<const std::string&>();
    const TextLength own = text_length(expressions::literal(text));
    if (!counts_fit(static_cast<std::size_t>(own.least), shape.length)) return false;
    if (!shape.patterns.empty() || !shape.formats.empty()) return std::nullopt;
    return true;
  }
  if (type == kArrayType && !shape.array_place.empty()) return std::nullopt;
  if (type == kObjectType && !shape.object_place.empty()) return std::nullopt;
  return true;
}

ArrayItems items_of(SchemaDocument& document, const Shape& shape) {
  std::size_t first = 0;
  for (const int node : shape.item_nodes) {
    const Json& schema = document.schema(node);
    if (schema.contains("prefixItems")) first = std::max(first, schema.at("prefixItems").size());
  }
  ArrayItems items;
  items.first.resize(first);
  for (const int node : shape.item_nodes) {
    const Json& schema = document.schema(node);
    const std::size_t own = schema.contains("prefixItems") ? schema.at("prefixItems").size() : 0;
    for (std::size_t i = 0; i < own; ++i) items.first[i].push_back(document.child(node, "prefixItems", i));
    if (!schema.contains("items")) continue;
    const int others = document.child(node, "items");
    for (std::size_t i = own; i < first; ++i) items.first[i].push_back(others);
    items.others.push_back(others);
  }
  return items;
}

ObjectMembers members_of(SchemaDocument& document, const Shape& shape) {
  ObjectMembers members;
  std::vector<std::string> names;
  std::set<std::string> known;
  const auto add_name = [&](const std::string& name) {
    if (known.insert(name).second) names.push_back(name);
  };
  for (const int node : shape.property_nodes) {
    const Json& schema = document.schema(node);
    if (schema.contains("properties")) {
      for (const auto& item : schema.at("properties").items()) add_name(item.key());
    }
    if (!schema.contains("additionalProperties")) continue;
    members.others.push_back(document.child(node, "additionalProperties"));
    if (schema.at("additionalProperties") == Json(false)) members.has_others = false;
  }
  for (const std::string& name : shape.required) add_name(name);
  const std::set<std::string> required(shape.required.begin(), shape.required.end());
  for (const std::string& name : names) {
    Conjunction value;
    for (const int node : shape.property_nodes) {
      const Json& schema = document.schema(node);
      if (schema.contains("properties") && schema.at("properties").contains(name)) {
        value.push_back(document.child(node, "properties", name));
      } else if (schema.contains("additionalProperties")) {
        value.push_back(document.child(node, "additionalProperties"));
      }
    }
    members.named.push_back({name, required.contains(name), std::move(value)});
  }
  return members;
}

}  // namespace tandem
