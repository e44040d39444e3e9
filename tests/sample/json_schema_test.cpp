#include "src/sample/grammar/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/error.h"
#include "tests/sample/grammar_recogniser.h"
#include "tests/sample/grammar_sampler.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Grammar compiled(const std::string& schema) { return json_schema_grammar(parse_json_schema(schema)); }

// Those of `texts` that the schema's grammar matches.
std::vector<std::string> matching(const std::string& schema, const std::vector<std::string>& texts) {
  const Grammar grammar = compiled(schema);
  GrammarRecogniser recogniser(grammar);
  std::vector<std::string> matched;
  for (const std::string& text : texts) {
    if (recogniser.matches(text)) matched.push_back(text);
  }
  return matched;
}

void expect_exactly(const std::string& schema, const std::vector<std::string>& valid,
                    const std::vector<std::string>& invalid) {
  EXPECT_EQ(matching(schema, valid), valid) << schema;
  EXPECT_EQ(matching(schema, invalid), std::vector<std::string>{}) << schema;
}

std::string error_of(const std::string& schema) {
  try {
    compiled(schema);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}

TEST(JsonSchema, AnyJsonIsAnyValueInTheSpacingOfCommonWriters) {
  const Grammar grammar = any_json_grammar();
  GrammarRecogniser recogniser(grammar);
  for (const char* text : {"null", "true", "false", "0", "-0", "-1.5e+10", "12e3", "0.25", "\"\"",
                           "\"a\\\"\\u00e9\\ud83d\\ude00\\n/\\/\"", "{}", "[]", "[1,2]", "[1, 2]", "{\"a\":1}",
                           "{\"a\": {\"b\": [null]}}", "{\n  \"a\": [\n    1,\n    2\n  ]\n}"}) {
    EXPECT_TRUE(recogniser.matches(text)) << text;
  }
  for (const char* text :
       {"",      " 1",          "1 ",          "01",      "1.",          ".5",          "+1",          "1e",
        "1e100", "nul",         "\"\n\"",      "\"\\x\"", "\"\\ud83d\"", "\"\\udc00\"", "\"\\u0041\"", "[1,]",
        "{a:1}", "{\"a\"  :1}", "{\"a\":  1}", "[1,  2]", "[ ]",         "{ }",         "NaN",         "'a'"}) {
    EXPECT_FALSE(recogniser.matches(text)) << text;
  }
  EXPECT_TRUE(recogniser.begins("{\"a\": [1, {"));
  EXPECT_FALSE(recogniser.begins("{\"a\": [1, }"));
}

TEST(JsonSchema, TypesAndBooleanSchemas) {
  expect_exactly(R"({"type": "null"})", {"null"}, {"0", "\"null\""});
  expect_exactly(R"({"type": ["boolean", "integer"]})", {"true", "false", "-7", "0"}, {"null", "1.5", "-0", "1.0"});
  expect_exactly("true", {"1", "[]", "{\"a\": null}"}, {"", "x"});
  expect_exactly("{}", {"1", "\"x\""}, {"x"});
  expect_exactly(R"({"title": "T", "default": 3, "$comment": "c"})", {"1", "\"x\""}, {"x"});
}

TEST(JsonSchema, AKeywordBindsValuesOfItsTypeOnly) {
  expect_exactly(R"({"minLength": 2, "minimum": 5, "maxItems": 1, "required": ["a"]})",
                 {"\"ab\"", "5", "[1]", "{\"a\": 0}", "null", "true"}, {"\"a\"", "4", "[1, 2]", "{}", "{\"b\": 0}"});
}

TEST(JsonSchema, ObjectsHaveTheirPropertiesInDeclaredOrder) {
  const std::string schema = R"({"type": "object", "additionalProperties": false, "required": ["b"],
      "properties": {"a": {"type": "integer"}, "b": {"type": "null"}, "c": {"type": "string"}}})";
  expect_exactly(
      schema,
      {R"({"b":null})", R"({"a": 1, "b": null})", R"({"b": null, "c": "x"})",
       "{\n  \"a\": -3,\n  \"b\": null,\n  \"c\": \"\"\n}"},
      {"{}", R"({"a": 1})", R"({"b": null, "a": 1})", R"({"b": null, "d": 1})", R"({"b": null,})",
       R"({"a": 1 "b": null})", R"({"b": null, "b": null})", R"({"a": 1.5, "b": null})", R"({, "b": null})"});
}

TEST(JsonSchema, PropertiesThatAreNotDeclaredFollowTheDeclaredOnes) {
  const std::string open = R"({"type": "object", "properties": {"ab": {"type": "integer"}}})";
  expect_exactly(open, {"{}", R"({"ab": 1})", R"({"ab": 1, "x": "y"})", R"({"a": "", "abc": [], "": 0})"},
                 {R"({"ab": ""})", R"({"x": 1, "ab": ""})", R"({"x": 1, "ab": 1})", R"({"\u0061b": ""})"});
  const std::string typed = R"({"type": "object", "properties": {"é/": true},
      "additionalProperties": {"type": "boolean"}, "required": ["z", "é/"]})";
  expect_exactly(
      typed, {R"({"é/": 1, "z": true})", R"({"\u00e9\/": 1, "z": true})", R"({"\u00E9/": 1, "z": true, "q": false})"},
      {R"({"é/": 1})", R"({"é/": 1, "z": 1})", R"({"é/": 1, "z": true, "q": 2})",
       R"({"é/": 1, "z": true, "\u00e9/": false})"});
}

TEST(JsonSchema, CountsOfProperties) {
  const std::string closed =
      R"({"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 2,
      "properties": {"a": {}, "b": {}, "c": {}}})";
  expect_exactly(closed, {R"({"a": 1})", R"({"c": 1})", R"({"a": 1, "c": 2})"}, {"{}", R"({"a": 1, "b": 2, "c": 3})"});
  expect_exactly(R"({"type": "object", "minProperties": 1, "maxProperties": 2})",
                 {R"({"a": 1})", R"({"a": 1, "c": 2})"}, {"{}", R"({"a": 1, "b": 2, "c": 3})"});
  expect_exactly(R"({"type": "object", "required": ["a", "b"], "minProperties": 3})",
                 {R"({"a": 1, "b": 2, "c": 3})", R"({"a": 1, "b": 2, "c": 3, "d": 4})"}, {R"({"a": 1, "b": 2})"});
  expect_exactly(R"({"type": "object", "maxProperties": 0})", {"{}"}, {R"({"a": 1})", "{ }"});
  EXPECT_THAT(error_of(R"({"type": "object", "minProperties": 2})"),
              AllOf(StartsWith("json schema: #/minProperties: "), HasSubstr("may come twice")));
}

TEST(JsonSchema, Arrays) {
  expect_exactly(R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
                 {"[1]", "[1, 2]", "[1,2,3]"}, {"[]", "[1, 2, 3, 4]", "[\"a\"]", "[1 2]", "[,1]"});
  expect_exactly(R"({"prefixItems": [{"type": "string"}, {"type": "null"}], "items": false, "type": "array"})",
                 {"[]", "[\"a\"]", "[\"a\", null]"}, {"[null]", "[\"a\", null, 1]", "[\"a\", 1]"});
  expect_exactly(R"({"prefixItems": [{"type": "string"}], "items": {"type": "null"}, "minItems": 3, "type": "array"})",
                 {"[\"a\", null, null]", "[\"a\", null, null, null]"}, {"[\"a\", null]", "[null, null, null]"});
  expect_exactly(R"({"prefixItems": [true, {"type": "null"}], "maxItems": 1, "type": "array"})", {"[]", "[0]"},
                 {"[0, null]"});
  expect_exactly(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
}

TEST(JsonSchema, LengthsCountCodePointsHoweverSpelt) {
  expect_exactly(R"({"type": "string", "minLength": 2, "maxLength": 3})",
                 {"\"ab\"", "\"é😀\"", R"("\u00e9\ud83d\uDE00\"")", R"("\n\\/")"},
                 {"\"a\"", "\"abcd\"", R"("\ud83d\ude00")"});
}

TEST(JsonSchema, PatternsHoldForTheTextBehindTheEscapes) {
  expect_exactly(R"({"type": "string", "pattern": "^[a-c\"\\n]+$"})", {R"("a\"\nb")"},
                 {R"("")", R"("ad")", R"("a\\")"});
  expect_exactly(R"({"type": "string", "pattern": "b"})", {R"("b")", R"("\u0000abé")"}, {R"("")", R"("\b")"});
  expect_exactly(R"({"type": "string", "pattern": "^x|y$"})", {R"("xa")", R"("ay")"}, {R"("ax")", R"("ya")"});
  expect_exactly(R"({"type": "string", "pattern": "^[^a]$"})", {R"("b")", R"("é")", R"("\u00e9")", R"("\u0000")"},
                 {R"("a")", R"("")", R"("bb")"});
  expect_exactly(R"({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3})", {"\"ab\"", "\"abc\""},
                 {"\"a\"", "\"abcd\"", "\"a1\""});
  expect_exactly(R"({"type": "string", "pattern": "^id-([a-z]{2})*$|^none$", "maxLength": 7})",
                 {"\"id-\"", "\"id-ab\"", "\"id-abcd\"", "\"none\""}, {"\"id-abcdef\"", "\"id-a\""});
}

TEST(JsonSchema, Formats) {
  const auto format = [](const std::string& name) { return R"({"type": "string", "format": ")" + name + "\"}"; };
  expect_exactly(
      format("date"), {"\"2024-02-29\"", "\"2000-02-29\"", "\"0001-12-31\"", "\"1999-11-30\""},
      {"\"2023-02-29\"", "\"1900-02-29\"", "\"0000-01-01\"", "\"2024-04-31\"", "\"2024-13-01\"", "\"2024-1-1\""});
  expect_exactly(
      format("time"), {"\"23:59:59Z\"", "\"00:00:00.123+05:30\""},
      {"\"24:00:00Z\"", "\"12:60:00Z\"", "\"12:00:60Z\"", "\"12:00:00\"", "\"12:00:00.Z\"", "\"12:00:00+24:00\""});
  expect_exactly(format("date-time"), {"\"2024-02-29T12:00:00Z\""},
                 {"\"2024-02-29 12:00:00Z\"", "\"2024-02-30T12:00:00Z\""});
  expect_exactly(format("uuid"), {"\"123e4567-E89B-12d3-a456-426614174000\""},
                 {"\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400g\""});
  expect_exactly(format("ipv4"), {"\"0.0.0.0\"", "\"255.249.199.10\""}, {"\"256.0.0.0\"", "\"1.2.3\"", "\"01.2.3.4\""});
  expect_exactly(format("ipv6"),
                 {"\"::\"", "\"::1\"", "\"1::\"", "\"1:2:3:4:5:6:7:8\"", "\"1:2:3:4:5:6:7::\"", "\"::2:3:4:5:6:7:8\"",
                  "\"1::3:4:5:6:7:8\"", "\"fe80::ABCD:1\"", "\"::ffff:1.2.3.4\"", "\"1:2:3:4:5:6:1.2.3.4\""},
                 {"\":\"", "\"1:2:3:4:5:6:7\"", "\"1:2:3:4:5:6:7:8:9\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8::\"",
                  "\"12345::\"", "\"::1.2.3\"", "\"1:2:3:4:5:6:7:1.2.3.4\""});
  expect_exactly(format("email"), {"\"a.b+c@x-y.example\"", "\"a@b\""},
                 {"\"a\"", "\"@b\"", "\"a@\"", "\".a@b\"", "\"a..b@c\"", "\"a@-b\"", "\"a@b-\"", "\"a b@c\""});
  expect_exactly(
      format("uri"),
      {"\"http://user@example.org:80/a//b?q=1&r=%20#frag\"", R"("http:\/\/[::1]")", "\"mailto:a@b\"", "\"a:\"",
       "\"file:///x\""},
      {"\"example.org\"", "\"1a:b\"", "\"http://a b\"", "\"http://a/%2\"", "\"http://[::1\"", "\"a:b#c#d\""});
}

TEST(JsonSchema, IntegerRanges) {
  for (const auto& [low, high] : std::vector<std::pair<int, int>>{{0, 0},
                                                                  {0, 9},
                                                                  {3, 7},
                                                                  {8, 12},
                                                                  {0, 255},
                                                                  {99, 1001},
                                                                  {-5, 5},
                                                                  {-120, -7},
                                                                  {-1, 0},
                                                                  {100, 199},
                                                                  {17, 4096}}) {
    const std::string schema = fmt::format(R"({{"type": "integer", "minimum": {}, "maximum": {}}})", low, high);
    const Grammar grammar = compiled(schema);
    GrammarRecogniser recogniser(grammar);
    for (int value = low - 150; value <= high + 150; ++value) {
      ASSERT_EQ(recogniser.matches(std::to_string(value)), low <= value && value <= high) << schema << value;
    }
  }
  expect_exactly(R"({"type": "integer", "exclusiveMinimum": 0})", {"1", "9", "10", "123456789012345678901"},
                 {"0", "-1"});
  expect_exactly(R"({"type": "integer", "exclusiveMaximum": -9.5})", {"-10", "-99", "-123"}, {"-9", "0", "10"});
  expect_exactly(R"({"type": "integer", "minimum": 1.5, "maximum": 3.99})", {"2", "3"}, {"1", "4"});
  expect_exactly(R"({"type": "integer", "maximum": 18446744073709551615, "minimum": 18446744073709551614})",
                 {"18446744073709551614", "18446744073709551615"}, {"18446744073709551613", "18446744073709551616"});
}

TEST(JsonSchema, MultiplesOfWholeNumbers) {
  for (const int multiple : {1, 2, 3, 7, 10, 60}) {
    const std::string schema = fmt::format(R"({{"type": "integer", "minimum": -70, "multipleOf": {}}})", multiple);
    const Grammar grammar = compiled(schema);
    GrammarRecogniser recogniser(grammar);
    for (int value = -150; value <= 1300; ++value) {
      ASSERT_EQ(recogniser.matches(std::to_string(value)), value >= -70 && value % multiple == 0) << schema << value;
    }
  }
  expect_exactly(R"({"type": "number", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]})", {"0", "12", "-24"},
                 {"4", "6", "12.5"});
}

TEST(JsonSchema, NumberRanges) {
  expect_exactly(R"({"type": "number", "minimum": -1.25, "maximum": 10.5})",
                 {"-1.25", "-1.250", "-1", "-0.5", "-0", "0", "0.0001", "1", "9.99", "10", "10.0", "10.5", "10.50"},
                 {"-1.26", "-1.2500001", "-2", "10.51", "11", "100", "1e0", "00", "1.", ".5"});
  expect_exactly(R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})",
                 {"0.5", "0.99999999999999", "0.00000000000001", "0.10"},
                 {"0", "0.0", "1", "1.0", "-0.5", "2", "0.999999999999999"});
  expect_exactly(R"({"type": "number", "minimum": 0.1})", {"0.1", "0.10", "0.11", "1", "25.75", "100"},
                 {"0", "0.0", "0.09", "-1", "0.099999999999999"});
  expect_exactly(R"({"type": "number", "maximum": -2.5})", {"-2.5", "-3", "-10", "-2.51"}, {"-2.4", "0", "2.5", "-0"});
  expect_exactly(R"({"type": "number", "minimum": 5, "maximum": 5})", {"5", "5.0"}, {"4.9", "5.1", "50"});
}

TEST(JsonSchema, EnumAndConstAreTheirValues) {
  expect_exactly(
      R"({"enum": ["yes", "yesterday", "é", 1, 2.5, null, {"a": [1]}, []]})",
      {"\"yes\"", "\"yesterday\"", "\"é\"", "\"\\u00e9\"", "1", "2.5", "null", "{\"a\": [1]}", "{\"a\":[1]}", "[]"},
      {"\"ye\"", "\"yest\"", "11", "2", "{}", "{\"a\": [2]}"});
  expect_exactly(R"({"const": "a\"b"})", {R"("a\"b")"}, {R"("a")"});
  expect_exactly(R"({"type": ["string", "null"], "enum": ["a", "bcd", 1, null], "maxLength": 2})", {"\"a\"", "null"},
                 {"1", "\"bcd\""});
  expect_exactly(R"({"enum": [1, 20, 300], "minimum": 2, "const": 20.0})", {"20"}, {"1", "300"});
}

TEST(JsonSchema, AlternativesAndConjunctions) {
  expect_exactly(R"({"anyOf": [{"type": "integer", "minimum": 5}, {"type": "string", "const": "x"}]})", {"5", "\"x\""},
                 {"4", "\"y\""});
  const std::string both = R"({"allOf": [
      {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
      {"properties": {"b": {"type": "null"}, "a": {"minimum": 3}}, "required": ["b"]}], "additionalProperties": true})";
  expect_exactly(both, {R"({"a": 3, "b": null})", R"({"a": 3, "b": null, "c": 1})"},
                 {R"({"a": 2, "b": null})", R"({"a": 3})", R"({"b": null})"});
  // additionalProperties looks at its neighbours only.
  expect_exactly(R"({"type": "object", "properties": {"a": {}}, "additionalProperties": false,
                     "allOf": [{"properties": {"b": {}}}]})",
                 {"{}", R"({"a": 1})"}, {R"({"b": 1})", R"({"a": 1, "b": 1})"});
  expect_exactly(R"({"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false,
                     "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
                 {R"({"a": 1})", R"({"b": 1})", R"({"a": 1, "b": 1})"}, {"{}"});
}

TEST(JsonSchema, OneOfNeedsBranchesThatCannotBothHold) {
  expect_exactly(R"({"oneOf": [{"type": "integer"}, {"type": "string"}, {"const": 1.5}]})", {"3", "\"a\"", "1.5"},
                 {"null"});
  const std::string tagged = R"({"oneOf": [
      {"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"], "additionalProperties": false},
      {"type": "object", "properties": {"kind": {"const": "line"}, "length": {"type": "integer"}},
       "required": ["kind", "length"], "additionalProperties": false}]})";
  expect_exactly(tagged, {R"({"kind": "dot"})", R"({"kind": "line", "length": 3})"},
                 {R"({"kind": "line"})", R"({"kind": "dot", "length": 3})", "{}"});
  expect_exactly(R"({"type": "integer", "oneOf": [{"maximum": 3}, {"minimum": 4}]})", {"3", "4"}, {"3.5"});
  for (const char* schema :
       {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
        R"({"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]})",
        R"({"oneOf": [{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}]})"}) {
    EXPECT_THAT(error_of(schema), StartsWith("json schema: #/oneOf: one value may satisfy both branch 0 and branch 1"));
  }
}

TEST(JsonSchema, ReferencesAndRecursion) {
  const std::string tree =
      R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "additionalProperties": false,
      "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
      "required": ["value"]}}})";
  expect_exactly(tree, {R"({"value": 1})", R"({"value": 1, "children": [{"value": 2, "children": []}, {"value": 3}]})"},
                 {R"({"children": []})", R"({"value": 1, "children": [{}]})"});
  expect_exactly(R"({"type": ["null", "array"], "items": {"$ref": "#"}, "maxItems": 1})", {"null", "[]", "[[[null]]]"},
                 {"[null, null]", "[1]"});
  expect_exactly(R"({"properties": {"a/b": {"const": 1}, "c~%d": {"const": 2}}, "anyOf": [
      {"$ref": "#/properties/a~1b"}, {"$ref": "#/properties/c~0%25d"}]})",
                 {"1", "2"}, {"3", "{}"});
}

TEST(JsonSchema, WhatNoFiniteValueSatisfiesIsLeftOut) {
  expect_exactly(R"({"type": "object", "properties": {"a": false, "b": {}}, "additionalProperties": false})",
                 {"{}", R"({"b": 1})"}, {R"({"a": 1})", R"({"a": 1, "b": 1})"});
  const std::string endless = R"({"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]})";
  EXPECT_THAT(error_of(endless), HasSubstr("#: no finite value satisfies this schema"));
  expect_exactly(R"({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"type": "array", "minItems": 1,
      "items": {"$ref": "#/$defs/a"}}}})",
                 {"null"}, {"[]", "[[]]"});
  const Grammar grammar = compiled(R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
      "$defs": {"a": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/a"}}}, "additionalProperties": false})");
  EXPECT_FALSE(GrammarRecogniser(grammar).begins("{\""));
}

TEST(JsonSchema, RandomTextsOfAGrammarAreItsOwn) {
  const Grammar grammar = any_json_grammar();
  GrammarSampler sampler(grammar, 5);
  GrammarRecogniser recogniser(grammar);
  for (int i = 0; i < 50; ++i) {
    const std::string text = sampler.text(60);
    EXPECT_TRUE(recogniser.matches(text)) << text;
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  }
}

}  // namespace
}  // namespace tandem
