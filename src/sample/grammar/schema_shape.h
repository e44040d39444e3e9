// What the subschemas of one conjunction say together about the values of each type.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/number_range.h"
#include "src/sample/grammar/schema_document.h"

namespace tandem {

// Bits of a set of types. JSON schema's number is whole | fraction, its integer is whole.
constexpr unsigned kNullType = 1, kBooleanType = 2, kWholeType = 4, kFractionType = 8, kStringType = 16,
                   kArrayType = 32, kObjectType = 64;
constexpr unsigned kNumberTypes = kWholeType | kFractionType, kAllTypes = 127;

// A keyword's text and where it stands.
struct PlacedText {
  std::string text;
  std::string place;
};

// One alternative, see SchemaDocument::alternatives. Each part holds for values of its type only; its place is the
// pointer of the last subschema that says something about that type, "" when none does.
struct Shape {
  unsigned types = kAllTypes;
  std::optional<std::vector<nlohmann::ordered_json>> values;  // of enum and const

  NumberRange numbers;
  std::string number_place;

  TextLength length{0, -1};
  std::vector<PlacedText> patterns, formats;
  std::string string_place;

  TextLength items{0, -1};
  std::vector<int> item_nodes;  // with prefixItems or items
  std::string array_place;

  TextLength properties{0, -1};
  std::vector<std::string> required;
  std::vector<int> property_nodes;  // with properties or additionalProperties
  std::string object_place;
};

Shape shape_of(SchemaDocument& document, const Conjunction& alternative);

// The type of one value, as a bit.
unsigned type_of(const nlohmann::ordered_json& value);

// Whether a value of enum or const satisfies everything else that `shape` says; nullopt where it says something about
// the value that is not looked at: a pattern, a format, items or properties.
std::optional<bool> admits(const Shape& shape, const nlohmann::ordered_json& value);

// What the elements of an array must satisfy: the first ones each their own, the rest `others`.
struct ArrayItems {
  std::vector<Conjunction> first;
  Conjunction others;
};
ArrayItems items_of(SchemaDocument& document, const Shape& shape);

// The properties of an object: those with a name in the order of the document, required ones that are not declared
// after them, then any others.
struct ObjectMembers {
  struct Member {
    std::string name;
    bool required;
    Conjunction value;
  };
  std::vector<Member> named;
  bool has_others = true;
  Conjunction others;
};
ObjectMembers members_of(SchemaDocument& document, const Shape& shape);

}  // namespace tandem
