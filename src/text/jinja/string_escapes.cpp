#include "src/text/jinja/string_escapes.h"

#include <charconv>

#include "src/text/utf8.h"

namespace tandem::jinja {
namespace {

// The character of 2, 4 or 8 hexadecimal digits at the front of `text`.
const char* hexadecimal(std::string_view text, std::size_t size, std::string& value) {
  std::uint32_t code = 0;
  if (text.size() < size) return "an escape lacks digits";
  const char* const end = text.data() + size;
  if (std::from_chars(text.data(), end, code, 16).ptr != end) return "an escape lacks digits";
  if (code > 0x10FFFF) return "an escape is beyond U+10FFFF";
  if (code >= 0xD800 && code < 0xE000) return "surrogates in a string are not supported";
  append_utf8(value, static_cast<char32_t>(code));
  return nullptr;
}

char simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return 0;
  }
}

bool octal(char c) { return c >= '0' && c <= '7'; }

}  // namespace

const char* read_escapes(std::string_view literal, std::string& value) {
  for (std::size_t i = 0; i < literal.size();) {
    if (literal[i] != '\\') {
      value += literal[i++];
      continue;
    }
    const char c = literal[i + 1];  // the lexer took the character after a backslash with it
    i += 2;
    if (const char simple = simple_escape(c)) {
      value += simple;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      if (const char* problem = hexadecimal(literal.substr(i), size, value)) return problem;
      i += size;
    } else if (octal(c)) {
      char32_t code = 0;
      std::size_t end = i - 1;
      for (; end < literal.size() && end < i + 2 && octal(literal[end]); ++end)
        code = code * 8 + static_cast<char32_t>(literal[end] - '0');
      append_utf8(value, code);
      i = end;
    } else if (c == 'N') {
      return "named characters in a string are not supported";
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return "a backslash before a character beyond ASCII is not supported";
    } else if (c != '\n') {
      value += '\\';
      value += c;
    }
  }
  return nullptr;
}

}  // namespace tandem::jinja
