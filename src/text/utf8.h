// The UTF-8 rules that tokenizing and streaming share: the Unicode standard, section 3.9, table 3-7.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

struct Utf8Step {
  std::size_t length;  // bytes of one character, or of one maximal invalid part; 0 only for empty text
  bool valid;          // a whole, well-formed character
  bool incomplete;     // not valid, but more bytes at the end of the text could make it so
  char32_t character;  // its code point when valid
};

// What stands at the front of `text`. Overlong forms, surrogates and values above U+10FFFF are invalid.
Utf8Step utf8_step(std::string_view text);

// Length of the longest prefix of `text` that is well-formed.
std::size_t valid_utf8_prefix(std::string_view text);

// Number of bytes (0..3) at the end of `text` that begin a character and do not finish it.
std::size_t incomplete_utf8_tail(std::string_view text);

// Unicode's property White_Space.
bool is_white_space(char32_t character);

// `character` as UTF-8, at the end of `out`.
void append_utf8(std::string& out, char32_t character);

}  // namespace tandem
