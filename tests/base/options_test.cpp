#include "src/base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>

#include "src/base/error.h"
#include "src/base/yaml_tree.h"
#include "tests/base/temp_dir.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The message of the config error that `action` throws; empty when it throws none.
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    return error.what();
  }
  return "";
}

std::string parse_error(std::string_view text) {
  return error_of([&] { Options::from_text(text, "a.yaml"); });
}

Options one(const std::string& value) { return Options::from_text("key: " + value + "\n", "a.yaml"); }

std::string integer_error(const std::string& value, std::int64_t low = 0, std::int64_t high = 63) {
  return error_of([&] { one(value).integer("key", 7, low, high, "Help."); });
}

// --- the text itself

TEST(OptionsText, EmptyTextHasNoKeys) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "~\n", "\xEF\xBB\xBF# mark\n"}) {
    const Options options = Options::from_text(text, "a.yaml");
    EXPECT_FALSE(options.has("key")) << text;
    EXPECT_NO_THROW(options.require_all_read()) << text;
  }
}

TEST(OptionsText, RootMustBeAMap) {
  EXPECT_EQ(parse_error("- a\n- b\n"), "a.yaml:1: expected keys and values (key: value), got a list of 2");
  EXPECT_EQ(parse_error("\njust words\n"), "a.yaml:2: expected keys and values (key: value), got \"just words\"");
}

TEST(OptionsText, DuplicateKeysAreRefusedAtEveryLevelWithBothLines) {
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 1\n"), "a.yaml:3: duplicate key a (first on line 1)");
  EXPECT_EQ(parse_error("draft:\n  length: 4\n  kind: none\n  length: 4\n"),
            "a.yaml:4: duplicate key draft.length (first on line 2)");
  EXPECT_EQ(parse_error("draft: {length: 4,\n  \"length\": 5}\n"),
            "a.yaml:2: duplicate key draft.length (first on line 1)");
  EXPECT_EQ(parse_error("a: {b: {c: 1}, b: 2}"), "a.yaml:1: duplicate key a.b (first on line 1)");
  EXPECT_EQ(parse_error("- {x: 1, x: 2}"), "a.yaml:1: duplicate key x (first on line 1)");
}

TEST(OptionsText, YamlMachineryIsRefusedByName) {
  EXPECT_EQ(parse_error("a: 1\nb: &base 2\n"), "a.yaml:2: anchor &base is not supported, write the value out");
  EXPECT_THAT(parse_error("a: &base {x: 1}\nb: *base\n"), HasSubstr("a.yaml:1: anchor &base"));
  EXPECT_THAT(parse_error("a: 1\nb: *nowhere\n"), HasSubstr("a.yaml:2: not valid YAML"));
  EXPECT_EQ(parse_error("a: 1\n<<: {b: 2}\n"), "a.yaml:2: merge keys (<<) are not supported, write the values out");
  EXPECT_THAT(parse_error("a: !!int 1\n"), HasSubstr("a.yaml:1: tag tag:yaml.org,2002:int is not supported"));
  EXPECT_THAT(parse_error("a:\n  !!map {b: 1}\n"), HasSubstr("a.yaml:2: tag tag:yaml.org,2002:map"));
  EXPECT_THAT(parse_error("a: !python/object:os.system [b]\n"), HasSubstr("tag !python/object:os.system"));
  EXPECT_THAT(parse_error("!!binary a: 1\n"), HasSubstr("tag tag:yaml.org,2002:binary"));
}

TEST(OptionsText, OneDocumentOnly) {
  EXPECT_EQ(parse_error("a: 1\n---\nb: 2\n"), "a.yaml:2: expected one YAML document, found the start of another");
  EXPECT_THAT(parse_error("a: 1\n---\n"), HasSubstr("a.yaml:2: expected one YAML document"));
  EXPECT_THAT(parse_error("a: 1\n...\nb: 2\n"), HasSubstr("a.yaml:3: expected one YAML document"));
  EXPECT_EQ(parse_error("%YAML 1.2\n---\na: 1\n...\n"), "");
}

TEST(OptionsText, KeysMustBeText) {
  EXPECT_THAT(parse_error("[a, b]: 1\n"), HasSubstr("a.yaml:1: expected a key, got a list or map"));
  EXPECT_THAT(parse_error("a: 1\n{b: 2}: 1\n"), HasSubstr("a.yaml:2: expected a key, got a list or map"));
  EXPECT_THAT(parse_error("? {b: 2}\n: 1\n"), HasSubstr("a.yaml:1: expected a key, got a list or map"));
  EXPECT_THAT(parse_error("~: 1\n"), HasSubstr("a.yaml:1: a key cannot be empty or null"));
  EXPECT_THAT(parse_error(": 1\n"), HasSubstr("a.yaml:1: a key cannot be empty or null"));
  // An unquoted template placeholder is a map to YAML, so the message says what to do.
  EXPECT_THAT(parse_error("a: {{b}}\n"), HasSubstr("needs quotes"));
}

TEST(OptionsText, SyntaxErrorsNameTheirLine) {
  for (const char* text : {"a: 1\nb: [1, 2\n", "a: 1\nb: \"open\n", "a: 1\nb: {c: 1\n", "a: 1\nb: 1 c: 2\n",
                           "a: 1\nb\n", "a: 1\n\tb: 2\n", "a: 1\nb: @x\n", "a: 1\nb: `x`\n", "a: 1\nb: \"\\q\"\n",
                           "a: 1\n]\n", "a: 1\nb: |\n x\ny\n", "a: 1\nb: {c: {d: 1}\n", "a: 1\nb: 'open\n",
                           "a: 1\n? b\n", "a: 1\n  b: 2\n", "a: 1\nb: %x\n", "a: 1\nb: \"\\ud800\"\n"}) {
    EXPECT_THAT(parse_error(text), testing::MatchesRegex("a\\.yaml:[234]: .+")) << text;
  }
  EXPECT_NE(parse_error("]"), "");
  EXPECT_NE(parse_error("}"), "");
}

TEST(OptionsText, BytesThatAreNoTextAreRefusedWithTheirPlace) {
  EXPECT_EQ(parse_error("a: 1\nb: \xff\n"), "a.yaml:2: expected UTF-8 text, got byte 0xff at column 4");
  EXPECT_EQ(parse_error(std::string_view("a: \0b\n", 6)),
            "a.yaml:1: expected UTF-8 text, got byte 0x00 at column 4 (a control character)");
  EXPECT_THAT(parse_error("a: 1\n\x04\nb: 2\n"), HasSubstr("a.yaml:2: expected UTF-8 text, got byte 0x04"));
  EXPECT_THAT(parse_error("a: \x7f\n"), HasSubstr("0x7f"));
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xFE\xFF", "\xE2(\xA1"}) {
    EXPECT_THAT(parse_error(std::string("a: ") + bad), HasSubstr("expected UTF-8 text")) << bad;
  }
  EXPECT_THAT(parse_error(std::string_view("\xFF\xFE"
                                           "a\0:\0",
                                           6)),
              HasSubstr("expected UTF-8 text"));
  for (const char* good : {"é", "€", "日本語", "😀", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80"}) {
    EXPECT_THAT(one(good).text("key", "none", "Help."), Optional(std::string(good)));
  }
}

TEST(OptionsText, NestingAndSizeAreLimited) {
  EXPECT_THAT(parse_error("a: " + std::string(16, '[') + std::string(16, ']')), HasSubstr("at most 16 levels"));
  EXPECT_EQ(parse_error("a: " + std::string(15, '[') + std::string(15, ']')), "");
  EXPECT_THAT(parse_error("# " + std::string(kMaxYamlBytes, 'x')), HasSubstr("at most 1048576 bytes"));
}

// Each is made to make a parser recurse, remember or look ahead without end: deep recursion would overflow the stack
// and quadratic work the time limit of the test.
TEST(OptionsText, LargeHostileTextIsReadOrRefusedInLinearTime) {
  for (const char* part : {"[",   "{",   "- ", "? ", ": ",  "{a: ",  "[[]",   "&a ",   "*a ",    "!a ",
                           "!<",  "\"",  "'",  "\n", " \n", "%a\n",  "---\n", "...\n", "a: b\n", "- a\n",
                           "|\n", ">\n", "a",  "#",  "\t",  "a:\n ", "]",     ",",     "a,",     "'' "}) {
    for (const char* before : {"", "a: ", "a: ["}) {
      std::string text = before;
      while (text.size() < kMaxYamlBytes / 16) text += part;
      try {
        Options::from_text(text, "a.yaml");
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::config);
        EXPECT_THAT(error.what(), StartsWith("a.yaml:")) << part;
      }
    }
  }
}

TEST(OptionsText, RandomTextNeverEscapesAsAnythingButAConfigError) {
  const std::vector<std::string> parts = {
      "a",   "b: ", "key: ", "\n",     "\n  ", "\n    ", "- ",   "[",    "]",  "{",   "}",    ", ",          "\"", "'",
      "&x ", "*x ", "!",     "!!str ", "? ",   ": ",     "|\n",  ">-\n", "#c", "---", "...",  "%TAG ! x\n",  "~",  "\\",
      "0x1", "\t",  "\r\n",  "\r",     "<<: ", "é",      "\xc3", "=",    "@",  "`",   "1e-3", "\xEF\xBB\xBF"};
  std::mt19937 random(20);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int length = static_cast<int>(random() % 12); length >= 0; --length) text += parts[random() % parts.size()];
    try {
      Options options = Options::from_text(text, "a.yaml");
      options.set("draft.length=" + text);
      options.texts("draft.length", "Help.");
      ++parsed;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::config) << text;
      ASSERT_THAT(error.what(), testing::AnyOf(StartsWith("a.yaml"), StartsWith("--set draft"))) << text;
    }
  }
  EXPECT_GT(parsed, 100);
}

TEST(OptionsText, WindowsLineEndingsChangeNothing) {
  const Options options = Options::from_text("a: 1\r\nb:\r\n  c: text\r\nd: 99\r\n", "a.yaml");
  EXPECT_EQ(options.integer("a", 0, 0, 9, "Help."), 1);
  EXPECT_THAT(options.section("b").text("c", "none", "Help."), Optional(std::string("text")));
  EXPECT_EQ(error_of([&] { options.integer("d", 0, 0, 9, "Help."); }), "a.yaml:4: d: expected integer 0..9, got 99");
}

// --- values

TEST(OptionsValues, UnsetKeysGiveTheFallback) {
  for (const char* text : {"other: 1", "key:", "key: ~", "key: null", "key: Null", "key: NULL", "key: # comment"}) {
    const Options options = Options::from_text(text, "a.yaml");
    EXPECT_FALSE(options.has("key")) << text;
    EXPECT_EQ(options.text("key", "none", "Help."), std::nullopt) << text;
    EXPECT_EQ(options.integer("key", 7, 0, 9, "Help."), 7) << text;
    EXPECT_EQ(options.integer_or("key", "auto", std::nullopt, 0, 9, "Help."), std::nullopt) << text;
    EXPECT_THAT(options.integer_or("key", "auto", 4, 0, 9, "Help."), Optional(4u)) << text;
    EXPECT_EQ(options.real("key", 0.5, {0, 1}, "Help."), 0.5) << text;
    EXPECT_TRUE(options.boolean("key", true, "Help.")) << text;
    EXPECT_EQ(options.choice("key", "a", {"a", "b"}, "Help."), "a") << text;
    EXPECT_THAT(options.texts("key", "Help."), IsEmpty()) << text;
    EXPECT_THAT(options.integers("key", 0, 9, "Help."), IsEmpty()) << text;
    EXPECT_THAT(options.integer_reals("key", 0, 9, "Help."), IsEmpty()) << text;
    EXPECT_EQ(options.shown("key"), "nothing") << text;
  }
}

TEST(OptionsValues, QuotedNullAndEmptyAreTexts) {
  EXPECT_THAT(one("\"null\"").text("key", "none", "Help."), Optional(std::string("null")));
  EXPECT_THAT(one("'~'").text("key", "none", "Help."), Optional(std::string("~")));
  EXPECT_THAT(one("\"\"").text("key", "none", "Help."), Optional(std::string("")));
  EXPECT_EQ(integer_error("\"\""), "a.yaml:1: key: expected integer 0..63, got \"\"");
  EXPECT_EQ(integer_error("'null'"), "a.yaml:1: key: expected integer 0..63, got null");
}

TEST(OptionsValues, ScalarsKeepTheirSpelling) {
  for (const char* word :
       {"yes", "no", "on", "off", "true", "1", "010", "1e-3", "0x1F", "1:30", "2001-01-01", ".inf"}) {
    EXPECT_THAT(one(word).text("key", "none", "Help."), Optional(std::string(word)));
    EXPECT_THAT(one('"' + std::string(word) + '"').text("key", "none", "Help."), Optional(std::string(word)));
  }
  EXPECT_THAT(one("[no, yes, 1, \"\", 'null', \"a\\nb\"]").texts("key", "Help."),
              ElementsAre("no", "yes", "1", "", "null", "a\nb"));
  EXPECT_THAT(one("|\n  two\n  lines\n").text("key", "none", "Help."), Optional(std::string("two\nlines\n")));
}

TEST(OptionsValues, IntegersInRangeAreRead) {
  EXPECT_EQ(one("0").integer("key", 7, 0, 63, "Help."), 0);
  EXPECT_EQ(one("63").integer("key", 7, 0, 63, "Help."), 63);
  EXPECT_EQ(one("+5").integer("key", 7, 0, 63, "Help."), 5);
  EXPECT_EQ(one("-0").integer("key", 7, 0, 63, "Help."), 0);
  EXPECT_EQ(one("\"5\"").integer("key", 7, 0, 63, "Help."), 5);
  EXPECT_EQ(one("-9223372036854775808").integer("key", 7, INT64_MIN, INT64_MAX, "Help."), INT64_MIN);
  EXPECT_EQ(one("9223372036854775807").integer("key", 7, INT64_MIN, INT64_MAX, "Help."), INT64_MAX);
  EXPECT_THAT(one("18446744073709551615").integer_or("key", "random", std::nullopt, 0, UINT64_MAX, "Help."),
              Optional(UINT64_MAX));
  EXPECT_EQ(one("random").integer_or("key", "random", 5, 0, UINT64_MAX, "Help."), std::nullopt);
}

TEST(OptionsValues, IntegersNeverWrapTruncateOrChangeBase) {
  for (const char* bad : {"-1",
                          "64",
                          "-2147483649",
                          "4294967296",
                          "4294967300",
                          "9223372036854775808",
                          "18446744073709551616",
                          "18446744073709551620",
                          "-18446744073709551612",
                          "99999999999999999999999999999999",
                          "4.0",
                          "4.",
                          "1e1",
                          "0x4",
                          "0o4",
                          "0b1",
                          "1_0",
                          "1,0",
                          "4 4",
                          "--4",
                          "+-4",
                          "+",
                          "four",
                          "true",
                          "4x",
                          ".4",
                          "nan",
                          "٤"}) {
    EXPECT_THAT(integer_error(bad), StartsWith("a.yaml:1: key: expected integer 0..63, got ")) << bad;
    EXPECT_THAT(integer_error(bad), HasSubstr(bad)) << bad;
  }
  for (const char* octal : {"010", "00", "007", "-010", "+08", "\"010\""}) {
    EXPECT_THAT(integer_error(octal), HasSubstr("(a leading zero could mean octal: write the number without it)"));
  }
  for (const char* bad : {"18446744073709551616", "-1", "1.0", "Random", "auto", "-18446744073709551615"}) {
    EXPECT_EQ(error_of([&] { one(bad).integer_or("key", "random", 5, 0, UINT64_MAX, "Help."); }),
              "a.yaml:1: key: expected random or integer 0..18446744073709551615, got " + std::string(bad));
  }
  EXPECT_THAT(integer_error("-9223372036854775809", INT64_MIN, INT64_MAX), HasSubstr("expected integer"));
  EXPECT_THAT(integer_error("9223372036854775808", INT64_MIN, INT64_MAX), HasSubstr("expected integer"));
}

TEST(OptionsValues, RealsInRangeAreRead) {
  const auto real = [](const char* text) { return one(text).real("key", 7, {-kInfinite, kInfinite}, "Help."); };
  EXPECT_EQ(real("1e-3"), 0.001);
  EXPECT_EQ(real("1E-3"), 0.001);
  EXPECT_EQ(real("0.7"), 0.7);
  EXPECT_EQ(real(".5"), 0.5);
  EXPECT_EQ(real("5."), 5);
  EXPECT_EQ(real("+2"), 2);
  EXPECT_EQ(real("-2.5e+3"), -2500);
  EXPECT_EQ(real("0"), 0);
  EXPECT_EQ(real("'0.25'"), 0.25);
  EXPECT_EQ(real("1.7976931348623157e308"), std::numeric_limits<double>::max());
}

TEST(OptionsValues, RealsAreFiniteDecimalAndInRange) {
  for (const char* bad :
       {"-0.1",   "1.0001", "inf", ".inf", "-.inf", "nan", ".nan",  "NaN",   "infinity", "1e999", "1e-999",
        "0x1p-1", "0,5",    "1/2", "half", "0.5f",  "5%",  "--0.5", "+-0.5", ".",        "e5",    "0.5 0.5"}) {
    EXPECT_THAT(error_of([&] {
                  one(bad).real("key", 0, {0, 1}, "Help.");
                }),
                StartsWith("a.yaml:1: key: expected number 0..1, got "))
        << bad;
  }
  EXPECT_THAT(error_of([] { one("01.5").real("key", 0, {0, 9}, "Help."); }), HasSubstr("leading zero"));
  EXPECT_EQ(error_of([] {
              one("-1").real("key", 0, {0, kInfinite}, "Help.");
            }),
            "a.yaml:1: key: expected number >= 0, got -1");
  EXPECT_EQ(error_of([] {
              one("0").real("key", 1, {0, kInfinite, true}, "Help.");
            }),
            "a.yaml:1: key: expected number > 0, got 0");
  EXPECT_EQ(error_of([] {
              one("6").real("key", 1, {0, 5, true}, "Help.");
            }),
            "a.yaml:1: key: expected number > 0 and <= 5, got 6");
}

TEST(OptionsValues, BooleansAreTrueOrFalseOnly) {
  EXPECT_TRUE(one("true").boolean("key", false, "Help."));
  EXPECT_FALSE(one("false").boolean("key", true, "Help."));
  EXPECT_TRUE(one("\"true\"").boolean("key", false, "Help."));
  for (const char* bad : {"yes", "no", "on", "off", "True", "FALSE", "1", "0", "y", "n", "t"}) {
    EXPECT_EQ(error_of([&] { one(bad).boolean("key", false, "Help."); }),
              "a.yaml:1: key: expected true or false, got " + std::string(bad));
  }
}

TEST(OptionsValues, ChoicesAreExact) {
  const std::vector<std::string> allowed = {"none", "model", "ngram"};
  EXPECT_EQ(one("ngram").choice("key", "none", allowed, "Help."), "ngram");
  EXPECT_EQ(error_of([&] { one("Model").choice("key", "none", allowed, "Help."); }),
            "a.yaml:1: key: expected none, model or ngram, got Model");
  EXPECT_EQ(error_of([&] { one("\"model \"").choice("key", "none", allowed, "Help."); }),
            "a.yaml:1: key: expected none, model or ngram, got \"model \"");
}

TEST(OptionsValues, ShapesAreChecked) {
  EXPECT_EQ(error_of([] { one("[1]").integer("key", 7, 0, 9, "Help."); }),
            "a.yaml:1: key: expected integer 0..9, got a list of 1");
  EXPECT_EQ(error_of([] { one("{a: 1}").text("key", "none", "Help."); }),
            "a.yaml:1: key: expected text, got a map of 1 (text that holds \": \" or begins with [ or { needs quotes)");
  EXPECT_EQ(error_of([] { one("''").path("key", "none", "Help."); }), "a.yaml:1: key: expected path, got \"\"");
  EXPECT_EQ(error_of([] { one("{a: 1}").texts("key", "Help."); }),
            "a.yaml:1: key: expected list of texts, got a map of 1");
  EXPECT_EQ(error_of([] { one("5").section("key"); }), "a.yaml:1: key: expected keys below it, got 5");
  EXPECT_EQ(error_of([] { one("[5]").section("key"); }), "a.yaml:1: key: expected keys below it, got a list of 1");
  EXPECT_EQ(error_of([] { one("[5]").integer_reals("key", 0, 9, "Help."); }),
            "a.yaml:1: key: expected map from integer 0..9 to number or -inf, got a list of 1");
}

TEST(OptionsValues, ListsNameTheLineOfABadEntry) {
  EXPECT_THAT(one("stop").texts("key", "Help."), ElementsAre("stop"));
  EXPECT_THAT(one("[]").texts("key", "Help."), IsEmpty());
  EXPECT_EQ(error_of([] { one("\n  - a\n  -\n  - b").texts("key", "Help."); }),
            "a.yaml:4: key: expected list of texts, got nothing");
  EXPECT_EQ(error_of([] { one("[a, null]").texts("key", "Help."); }),
            "a.yaml:1: key: expected list of texts, got nothing");
  EXPECT_EQ(error_of([] { one("[a, [b]]").texts("key", "Help."); }),
            "a.yaml:1: key: expected list of texts, got a list of 1");
  EXPECT_THAT(one("[1, 2, \"3\"]").integers("key", 0, 9, "Help."), ElementsAre(1, 2, 3));
  EXPECT_THAT(one("4").integers("key", 0, 9, "Help."), ElementsAre(4));
  EXPECT_EQ(error_of([] { one("\n- 1\n- 2\n- -3\n").integers("key", 0, 9, "Help."); }),
            "a.yaml:4: key: expected list, each integer 0..9, got -3");
  EXPECT_THAT(error_of([] { one("[010]").integers("key", 0, 99, "Help."); }), HasSubstr("leading zero"));
}

TEST(OptionsValues, MapsFromIdToRealAreReadInOrder) {
  EXPECT_THAT(one("{5: -1, 2: 1e-3, \"7\": 0.5}").integer_reals("key", 0, 9, "Help."),
              ElementsAre(Pair(5, -1), Pair(2, 0.001), Pair(7, 0.5)));
  EXPECT_THAT(one("{5: -inf, 2: -.inf}").integer_reals("key", 0, 9, "Help."),
              ElementsAre(Pair(5, -HUGE_VAL), Pair(2, -HUGE_VAL)));
  const auto error = [](const char* text) { return error_of([&] { one(text).integer_reals("key", 0, 9, "Help."); }); };
  EXPECT_EQ(error("\n  1: 2\n  10: 2\n"),
            "a.yaml:3: key: expected map from integer 0..9 to number or -inf, got key 10");
  EXPECT_THAT(error("{-1: 2}"), HasSubstr("got key -1"));
  EXPECT_THAT(error("{01: 2}"), HasSubstr("leading zero"));
  EXPECT_THAT(error("{1: x}"), HasSubstr("got x"));
  for (const char* value : {"inf", ".inf", "+inf", "nan", ".nan", "1e999"}) {
    EXPECT_THAT(error(fmt::format("{{1: {}}}", value).c_str()), HasSubstr(std::string("got ") + value));
  }
  EXPECT_THAT(error("{1: }"), HasSubstr("got nothing"));
  EXPECT_THAT(error("{1: 2, +1: 3}"), HasSubstr("duplicate key 1"));
}

TEST(OptionsValues, LongAndOddValuesAreShownShortAndEscaped) {
  EXPECT_THAT(integer_error(std::string(5000, 'x')), HasSubstr("got " + std::string(60, 'x') + "... (5000 bytes)"));
  EXPECT_THAT(integer_error("\"a\\nb\\x1b[31m\""), HasSubstr("got \"a\\nb\\x1b[31m\""));
  EXPECT_THAT(integer_error(std::string(59, 'x') + "€"), HasSubstr("got " + std::string(59, 'x') + "... (62 bytes)"));
  EXPECT_EQ(shown_text("say \"hi\""), "\"say \\\"hi\\\"\"");
}

// --- unknown keys

std::string unknown(std::string_view text) {
  return error_of([&] {
    const Options options = Options::from_text(text, "configs/a.yaml");
    const Options draft = options.section("draft");
    draft.text("model", "unset", "Help.");
    draft.integer("length", 4, 0, 63, "Help.");
    draft.section("ngram").integer("min_match", 2, 1, 9, "Help.");
    options.section("sampling").real("temperature", 0.7, {0, 9}, "Help.");
    options.section("sampling").integer_reals("logit_bias", 0, 9, "Help.");
    options.require_all_read();
  });
}

TEST(OptionsUnknown, NearestNameIsOffered) {
  EXPECT_EQ(unknown("draft:\n  lenght: 4\n"), "configs/a.yaml:2: unknown key draft.lenght (did you mean length?)");
  EXPECT_EQ(unknown("\n\ndarft:\n  length: 4\n"), "configs/a.yaml:3: unknown key darft (did you mean draft?)");
  EXPECT_EQ(unknown("draft:\n  ngrams: {}\n"), "configs/a.yaml:2: unknown key draft.ngrams (did you mean ngram?)");
  EXPECT_EQ(unknown("draft:\n  ngram: {min_mach: 1}"),
            "configs/a.yaml:2: unknown key draft.ngram.min_mach (did you mean min_match?)");
  EXPECT_EQ(unknown("sampling: {temp: 1}"), "configs/a.yaml:1: unknown key sampling.temp (did you mean temperature?)");
}

TEST(OptionsUnknown, AKeyOfAnotherSectionIsOfferedByItsFullName) {
  EXPECT_EQ(unknown("temperature: 0\n"),
            "configs/a.yaml:1: unknown key temperature (did you mean sampling.temperature?)");
  EXPECT_EQ(unknown("draft:\n  min_match: 3\n"),
            "configs/a.yaml:2: unknown key draft.min_match (did you mean draft.ngram.min_match?)");
}

TEST(OptionsUnknown, DottedNamesInTheFileSayHowToNest) {
  EXPECT_EQ(unknown("draft.length: 4\n"),
            "configs/a.yaml:1: unknown key draft.length (keys nest: write length below draft)");
  EXPECT_EQ(unknown("draft.ngram.min_match: 4\n"),
            "configs/a.yaml:1: unknown key draft.ngram.min_match (keys nest: write min_match below draft.ngram)");
  EXPECT_THAT(unknown("draft:\n  ngram.min_match: 4\n"),
              StartsWith("configs/a.yaml:2: unknown key draft.ngram.min_match"));
}

TEST(OptionsUnknown, FarNamesGetNoHintAndKnownOnesNoError) {
  EXPECT_EQ(unknown("zzzzzz: 1\n"), "configs/a.yaml:1: unknown key zzzzzz");
  EXPECT_EQ(unknown("\"\": 1\n"), "configs/a.yaml:1: unknown key \"\"");
  EXPECT_THAT(unknown("? " + std::string(5000, 'd') + "\n: 1\n"), HasSubstr("... (5000 bytes)"));
  EXPECT_EQ(unknown("draft: {model: , length: 4, ngram: {min_match: 1}}\nsampling: {logit_bias: {3: 1}}\n"), "");
  EXPECT_EQ(unknown("draft:\nsampling: ~\n"), "");
  EXPECT_THAT(unknown("zzzzzz:\n"), HasSubstr("unknown key zzzzzz"));  // unset, yet misspelt
}

TEST(OptionsUnknown, NearestNameCountsSwapsOnceAndKeepsTheFirstOfTies) {
  EXPECT_THAT(nearest_name("lenght", {"kind", "length"}), Optional(std::string("length")));
  EXPECT_THAT(nearest_name("b", {"a", "c"}), Optional(std::string("a")));
  EXPECT_THAT(nearest_name("top_q", {"top_k", "top_p"}), Optional(std::string("top_k")));
  EXPECT_THAT(nearest_name("length", {"lengths", "length"}), Optional(std::string("length")));
  EXPECT_THAT(nearest_name("max", {"min_p", "max_nodes"}), Optional(std::string("max_nodes")));
  EXPECT_EQ(nearest_name("kind", {"length", "model"}), std::nullopt);
  EXPECT_EQ(nearest_name("", {"a"}), std::nullopt);
  EXPECT_EQ(nearest_name("length", {}), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), {std::string(100000, 'a')}), std::nullopt);
}

// --- --set

TEST(OptionsSet, WinsOverTheFileAndNeedsNoSection) {
  Options options = Options::from_text("draft:\n  length: 4\n  kind: model\nempty:\n", "a.yaml");
  options.set("draft.length=8");
  options.set("sampling.temperature=1e-3");
  options.set("empty.key=x");
  options.set("new.deep.key=y");
  EXPECT_EQ(options.integer("draft.length", 1, 0, 63, "Help."), 8);
  EXPECT_THAT(options.text("draft.kind", "none", "Help."), Optional(std::string("model")));
  EXPECT_EQ(options.real("sampling.temperature", 1, {0, 9}, "Help."), 0.001);
  EXPECT_THAT(options.text("empty.key", "none", "Help."), Optional(std::string("x")));
  EXPECT_THAT(options.text("new.deep.key", "none", "Help."), Optional(std::string("y")));
  EXPECT_NO_THROW(options.require_all_read());
}

TEST(OptionsSet, TheLastOneWinsAndAnEmptyOneUnsets) {
  Options options = Options::from_text("draft:\n  length: 4\n", "a.yaml");
  options.set("draft.length=8");
  options.set("draft.length=9");
  EXPECT_EQ(options.integer("draft.length", 1, 0, 63, "Help."), 9);
  options.set("draft.length=");
  EXPECT_EQ(options.integer("draft.length", 1, 0, 63, "Help."), 1);
  options.set("draft={length: 3}");
  EXPECT_EQ(options.integer("draft.length", 1, 0, 63, "Help."), 3);
}

TEST(OptionsSet, ValuesAreYaml) {
  Options options;
  options.set("a=[no, yes, 1]");
  options.set("b=a=b, c");
  options.set("c=\"x: y\"");
  options.set("d=null");
  EXPECT_THAT(options.texts("a", "Help."), ElementsAre("no", "yes", "1"));
  EXPECT_THAT(options.text("b", "none", "Help."), Optional(std::string("a=b, c")));
  EXPECT_THAT(options.text("c", "none", "Help."), Optional(std::string("x: y")));
  EXPECT_FALSE(options.has("d"));
}

TEST(OptionsSet, ErrorsNameTheSet) {
  Options options = Options::from_text("draft:\n  length: 4\nname: x\nlist: [1]\n", "a.yaml");
  const auto set_error = [&](std::string_view text) { return error_of([&] { options.set(text); }); };
  EXPECT_EQ(set_error("draft.length"), "--set draft.length: expected key=value, e.g. draft.length=4");
  EXPECT_THAT(set_error("=4"), StartsWith("--set =4: expected key=value"));
  EXPECT_THAT(set_error(""), StartsWith("--set \"\": expected key=value"));
  EXPECT_THAT(set_error("draft..length=4"), StartsWith("--set draft..length=4: expected key=value"));
  EXPECT_THAT(set_error(".=4"), HasSubstr("expected key=value"));
  EXPECT_THAT(set_error(std::string(100000, '.') + "=1"), HasSubstr("expected key=value"));
  EXPECT_THAT(set_error("draft.length=[1"), StartsWith("--set draft.length: expected a key, got a list or map"));
  EXPECT_THAT(set_error("draft.kind=[0-9]+"), HasSubstr("(a text that YAML reads otherwise takes quotes: '\"...\"')"));
  EXPECT_THAT(set_error("draft.length='1"), StartsWith("--set draft.length: not valid YAML: a quoted text is not"));
  EXPECT_THAT(set_error("draft.length=&a 1"), StartsWith("--set draft.length: anchor &a is not supported"));
  EXPECT_THAT(set_error("draft.length=\xff"), StartsWith("--set draft.length: expected UTF-8 text"));
  EXPECT_THAT(set_error("draft={a: 1, a: 2}"), StartsWith("--set draft: duplicate key a"));
  EXPECT_EQ(set_error("draft.length.x=1"),
            "--set draft.length.x: draft.length holds 4 (a.yaml:2), so nothing can be set below it");
  EXPECT_THAT(set_error("list.x=1"), HasSubstr("list holds a list of 1 (a.yaml:4)"));
  EXPECT_EQ(options.integer("draft.length", 1, 0, 63, "Help."), 4);  // a refused --set changes nothing

  options.set("draft.length=99");
  EXPECT_EQ(error_of([&] { options.integer("draft.length", 1, 0, 63, "Help."); }),
            "--set draft.length: expected integer 0..63, got 99");
  options.set("draft={length: 98}");
  EXPECT_EQ(error_of([&] { options.integer("draft.length", 1, 0, 63, "Help."); }),
            "--set draft: draft.length: expected integer 0..63, got 98");
  options = Options::from_text("draft: {length: 4}", "a.yaml");
  options.integer("draft.length", 1, 0, 63, "Help.");
  options.set("draft.lenght=4");
  EXPECT_EQ(error_of([&] { options.require_all_read(); }),
            "--set draft.lenght: unknown key draft.lenght (did you mean length?)");
}

// --- places, files, documentation

TEST(OptionsPlaces, RefuseNamesThePlaceOfTheKey) {
  Options options = Options::from_text("a: 1\nb:\n  c: 2\n  d:\n", "a.yaml");
  options.set("b.e=3");
  EXPECT_EQ(error_of([&] { options.refuse("b.c", "no"); }), "a.yaml:3: b.c: no");
  EXPECT_EQ(error_of([&] { options.section("b").refuse("c", "no"); }), "a.yaml:3: b.c: no");
  EXPECT_EQ(error_of([&] { options.refuse("b.d", "no"); }), "a.yaml:4: b.d: no");
  EXPECT_EQ(error_of([&] { options.refuse("b.e", "no"); }), "--set b.e: no");
  EXPECT_EQ(error_of([&] { options.refuse("b.x", "no"); }), "a.yaml: b.x: no");
  EXPECT_EQ(error_of([&] { Options().refuse("b.x", "no"); }), "b.x: no");
}

TEST(OptionsPlaces, PathsStartAtTheFolderOfTheFileOrTheWorkingFolder) {
  const test::TempDir folder;
  const std::string path = folder.file("a.yaml", "a: x\n");
  Options options = Options::from_file(path);
  options.set("b=y");
  EXPECT_EQ(options.base_folder("a"), folder.path());
  EXPECT_EQ(options.base_folder("b"), std::filesystem::current_path().string());
  EXPECT_EQ(Options::from_text("a: x", "t").base_folder("a"), std::filesystem::current_path().string());
  EXPECT_EQ(options.name(), path);
}

TEST(OptionsPlaces, FilesThatCannotBeReadAreNamed) {
  const test::TempDir folder;
  const std::string missing = folder.path() + "/none.yaml";
  EXPECT_EQ(error_of([&] { Options::from_file(missing); }), missing + ": no such file");
  EXPECT_EQ(error_of([&] { Options::from_file(folder.path()); }), folder.path() + ": is a folder");
  const std::string large = folder.file("large.yaml", std::string(3 * kMaxYamlBytes, '#'));
  EXPECT_THAT(error_of([&] { Options::from_file(large); }), HasSubstr("at most 1048576 bytes"));
  const std::string binary = folder.file("model.gguf", std::string_view("GGUF\x03\0\0\0\x52\x01", 10));
  EXPECT_EQ(error_of([&] { Options::from_file(binary); }),
            binary + ":1: expected UTF-8 text, got byte 0x03 at column 5 (a control character)");
}

TEST(OptionsDocumentation, ListsEachKeyOnceInTheOrderOfReading) {
  const Options options;
  options.section("b").integer("two", 4, 0, 63, "Two.");
  options.real("one", 0.5, {0, 1}, "One.");
  options.section("b").integer("two", 4, 0, 63, "Two.");
  options.integer_or("three", "auto", std::nullopt, 1, 9, "Three.");
  options.choice("four", "x", {"x", "y"}, "Four.");
  const auto documentation = options.documentation();
  ASSERT_EQ(documentation.size(), 4u);
  EXPECT_EQ(documentation[0].key, "b.two");
  EXPECT_EQ(documentation[0].type, "integer 0..63");
  EXPECT_EQ(documentation[0].fallback, "4");
  EXPECT_EQ(documentation[0].help, "Two.");
  EXPECT_EQ(documentation[1].type, "number 0..1");
  EXPECT_EQ(documentation[2].type, "auto or integer 1..9");
  EXPECT_EQ(documentation[2].fallback, "auto");
  EXPECT_EQ(documentation[3].type, "x or y");
}

}  // namespace
}  // namespace tandem
