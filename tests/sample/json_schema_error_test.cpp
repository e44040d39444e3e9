#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/sample/grammar/json_schema.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(const std::string& schema) {
  try {
    json_schema_grammar(parse_json_schema(schema, "s.json"), "s.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}

TEST(JsonSchemaErrors, NameThePointerOfTheKeyword) {
  const std::vector<std::pair<std::string, std::string>> faults{
      {R"({"properties": {"a/b": {"not": {}}}})", "#/properties/a~1b/not: this keyword is not supported"},
      {R"({"propertys": {}})", "#/propertys: this keyword is not supported (did you mean properties?)"},
      {R"({"allOf": [{}, {"uniqueItems": true}]})", "#/allOf/1/uniqueItems: only false is supported"},
      {R"({"type": "text"})", "#/type: expected null, boolean, integer"},
      {R"({"items": [{}]})", "#/items: a list is not supported here: use prefixItems"},
      {R"({"minLength": -1})", "#/minLength: expected a whole number from 0, got -1"},
      {R"({"minLength": 1.5})", "#/minLength: expected a whole number from 0, got 1.5"},
      {R"({"maxItems": 10001})", "#/maxItems: 10001 is above the limit of 10000"},
      {R"({"exclusiveMinimum": true})", "#/exclusiveMinimum: expected a number, got true"},
      {R"({"multipleOf": 0.01})", "#/multipleOf: 0.01 is not supported: only whole multiples are exact"},
      {R"({"multipleOf": 0})", "#/multipleOf: expected a number above 0, got 0"},
      {R"({"multipleOf": 1001})", "#/multipleOf: multipleOf 1001: at most 1000 is supported"},
      {R"({"type": "number", "exclusiveMaximum": 1e16})", "#/exclusiveMaximum: an exclusive bound of 17 digits"},
      {R"({"minimum": 1e300})", "#/minimum: a bound of 301 digits before its point; at most 40"},
      {R"-({"pattern": "a(?=b)"})-", "#/pattern: character 4 ('='): look-around and flags are not supported"},
      {R"({"pattern": "a", "format": "date"})", "#/format: not supported together with #/pattern"},
      {R"({"pattern": "a", "maxLength": 4})", "#/pattern: minLength and maxLength are supported here only where"},
      {R"({"format": "hostname"})", "#/format: format 'hostname' is not supported; expected date, date-time, email"},
      {R"({"enum": []})", "#/enum: expected a list of values that is not empty, got []"},
      {R"({"enum": ["a"], "pattern": "a"})", "#/pattern: not supported together with enum or const"},
      {R"({"required": "a"})", "#/required: expected a list of names, got \"a\""},
      {R"({"additionalProperties": 1})", "#/additionalProperties: expected a schema, got 1"},
      {R"({"anyOf": []})", "#/anyOf: expected a list of schemas that is not empty, got []"},
      {R"({"$ref": "other.json"})", "#/$ref: 'other.json' is not supported"},
      {R"({"$ref": "#anchor"})", "#/$ref: '#anchor' is not supported"},
      {R"({"$ref": "#/$defs/a"})", "#/$ref: there is no #/$defs/a in the document"},
      {R"({"$ref": "#/$defs/a%2"})", "#/$ref: expected two hexadecimal digits after %"},
      {R"({"$ref": "#/title", "title": "t"})", "#/title: expected a schema: an object, true or false, got \"t\""},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", "#: no finite value satisfies this schema"},
      {"false", "#: no finite value satisfies this schema"},
      {"3", "#: expected a schema: an object, true or false, got 3"}};
  for (const auto& [schema, message] : faults)
    EXPECT_THAT(error_of(schema), StartsWith("s.json: " + message)) << schema;
}

TEST(JsonSchemaErrors, ReferencesBackToThemselvesAreRefusedByPointer) {
  EXPECT_THAT(error_of(R"({"$ref": "#"})"), StartsWith("s.json: #: refers to itself before any text"));
  EXPECT_THAT(error_of(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})"),
              HasSubstr("refers to itself before any text"));
  EXPECT_THAT(error_of(R"({"properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/properties/a"}]}}})"),
              StartsWith("s.json: #/properties/a: refers to itself before any text"));
}

TEST(JsonSchemaErrors, TextsThatAreNotJson) {
  EXPECT_THAT(error_of("{\n  \"type\": }"),
              AllOf(StartsWith("s.json: not JSON, line 2, column 11: "), HasSubstr("'}'")));
  EXPECT_THAT(error_of(R"({"type": "null", "type": "string"})"),
              StartsWith("s.json: an object has the name 'type' twice"));
  EXPECT_THAT(error_of("{\"const\": \"\xff\"}"), StartsWith("s.json: not JSON"));
}

TEST(JsonSchemaErrors, LimitsOnDepthAndSize) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"items": )";
  EXPECT_THAT(error_of(deep), StartsWith("s.json: nested deeper than 64"));
  EXPECT_THAT(error_of("[" + std::string(std::size_t{1} << 20, ' ') + "]"),
              HasSubstr("bytes of text; at most 1048576"));
  std::string product = R"({"allOf": [)", list = R"({"anyOf": [)";
  for (int i = 0; i < 20; ++i) list += fmt::format(R"({}{{"minimum": {}}})", i == 0 ? "" : ", ", i);
  for (int i = 0; i < 3; ++i) product += (i == 0 ? "" : ", ") + list + "]}";
  EXPECT_THAT(error_of(product + "]}"), StartsWith("s.json: #: 400 combinations of alternatives; at most 256"));
  EXPECT_THAT(error_of(R"({"type": "string", "pattern": "^(([a-c]{1000}){1000}){1000}$"})"),
              HasSubstr("larger than 100000 characters once repetitions are written out"));
  std::string many = R"({"type": "object", "properties": {)";
  for (int i = 0; i < 100; ++i) {
    many += fmt::format(R"({}"{}": {{"type": "string", "maxLength": {}}})", i == 0 ? "" : ", ", i, 10'000 - i);
  }
  EXPECT_THAT(error_of(many + "}}"), HasSubstr("larger than 1000000 characters once repetitions are written out"));
}

}  // namespace
}  // namespace tandem
