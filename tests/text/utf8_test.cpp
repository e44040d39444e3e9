#include "src/text/utf8.h"

#include <gtest/gtest.h>

#include "src/text/text_stream.h"

namespace tandem {
namespace {

TEST(Utf8, EveryCharacterRoundTripsAndSurrogatesAreInvalid) {
  for (char32_t character = 0; character < 0x110000; character += character < 0x3000 ? 1 : 61) {
    std::string text;
    append_utf8(text, character);
    const Utf8Step step = utf8_step(text);
    const bool surrogate = character >= 0xD800 && character < 0xE000;
    ASSERT_EQ(step.valid, !surrogate) << static_cast<unsigned>(character);
    if (surrogate) continue;
    ASSERT_EQ(step.character, character);
    ASSERT_EQ(step.length, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_TRUE(utf8_step(text.substr(0, cut)).incomplete);
      ASSERT_EQ(incomplete_utf8_tail(std::string("x").append(text, 0, cut)), cut);
    }
    ASSERT_EQ(incomplete_utf8_tail(text), 0u);
  }
}

TEST(Utf8, OverlongAndTooLargeFormsAreInvalid) {
  for (const char* text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80", "\x80", "\xFF"}) {
    EXPECT_FALSE(utf8_step(text).valid);
    EXPECT_FALSE(utf8_step(text).incomplete);
    EXPECT_EQ(valid_utf8_prefix(std::string("a").append(text)), 1u);
  }
}

// The worked example of the Unicode standard, section 3.9, table 3-8, and its neighbours.
TEST(Utf8, EachMaximalInvalidPartBecomesOneReplacement) {
  EXPECT_EQ(to_valid_utf8("a\xF1\x80\x80\xE1\x80\xC2"
                          "b\x80"
                          "c\x80\xBF"
                          "d"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(to_valid_utf8("\xE0\x80\x41"), "\uFFFD\uFFFDA");
  EXPECT_EQ(to_valid_utf8("\u65e5\xE6\x97"), "\u65e5\uFFFD");
  EXPECT_EQ(to_valid_utf8("plain \u00e9"), "plain \u00e9");
}

}  // namespace
}  // namespace tandem
