#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/text/jinja/unicode.h"

#include <pcre2.h>

#include <array>
#include <memory>

#include "src/text/jinja/value.h"
#include "src/text/utf8.h"

namespace tandem::jinja {
namespace {

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
using Pattern = std::unique_ptr<pcre2_code, CodeDeleter>;

PCRE2_SPTR bytes_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

Pattern compile(std::string_view pattern) {
  int error = 0;
  std::size_t at = 0;
  return Pattern(
      pcre2_compile(bytes_of(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL, &error, &at, nullptr));
}

bool matches(const Pattern& pattern, std::string_view character) {
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(pcre2_match_data_create(1, nullptr),
                                                                             pcre2_match_data_free);
  return pcre2_match(pattern.get(), bytes_of(character), character.size(), 0, 0, match.get(), nullptr) >= 0;
}

bool ascii(std::string_view character) { return character.size() == 1; }

// Characters whose other case is more than one character, differs between title and upper case, or hangs on the word.
bool has_special_case(char32_t c, LetterCase wanted) {
  if (wanted == LetterCase::lower) return c == 0x130 || c == 0x3A3;
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (wanted == LetterCase::title && (within(0x1C4, 0x1CC) || within(0x1F1, 0x1F3) || within(0x10D0, 0x10FF)))
    return true;
  return c == 0xDF || c == 0x149 || c == 0x1F0 || c == 0x345 || c == 0x390 || c == 0x3B0 || c == 0x587 ||
         within(0x1E96, 0x1E9A) || within(0x1F50, 0x1FFC) || within(0xFB00, 0xFB17);
}

std::string substitute(std::string_view character, LetterCase wanted) {
  static const Pattern any = compile("(.)");
  const std::string_view replacement = wanted == LetterCase::lower ? "\\L$1" : "\\U$1";
  std::array<PCRE2_UCHAR, 16> out{};
  std::size_t size = out.size();
  const int rc = pcre2_substitute(any.get(), bytes_of(character), character.size(), 0, PCRE2_SUBSTITUTE_EXTENDED,
                                  nullptr, nullptr, bytes_of(replacement), replacement.size(), out.data(), &size);
  if (rc != 1) return std::string(character);
  return {reinterpret_cast<const char*>(out.data()), size};
}

template <typename CaseOf>
MarkedText map_characters(const MarkedText& text, CaseOf case_of) {
  MarkedText out;
  const std::vector<std::size_t> starts = character_starts(text.bytes());
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const std::string_view character = std::string_view(text.bytes()).substr(starts[i], starts[i + 1] - starts[i]);
    out.append(in_case(character, case_of(i, character)), text.input_at(starts[i]));
  }
  return out;
}

}  // namespace

std::string in_case(std::string_view character, LetterCase wanted) {
  const Utf8Step step = utf8_step(character);
  if (!step.valid) return std::string(character);
  if (ascii(character)) {
    const char c = character[0];
    const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
    const bool flip = wanted == LetterCase::lower ? upper : lower;
    return std::string(1, static_cast<char>(flip ? c ^ 0x20 : c));
  }
  if (has_special_case(step.character, wanted)) {
    unsupported("the letter case of {} is not supported", std::string(character));
  }
  return substitute(character, wanted);
}

MarkedText in_case(const MarkedText& text, LetterCase wanted) {
  return map_characters(text, [&](std::size_t, std::string_view) { return wanted; });
}

MarkedText capitalized(const MarkedText& text) {
  return map_characters(text,
                        [](std::size_t i, std::string_view) { return i == 0 ? LetterCase::title : LetterCase::lower; });
}

MarkedText titled(const MarkedText& text) {
  bool in_word = false;
  return map_characters(text, [&](std::size_t, std::string_view character) {
    const bool follows = in_word;
    in_word = is_letter(character);
    return follows ? LetterCase::lower : LetterCase::title;
  });
}

bool is_letter(std::string_view character) { return is_upper_letter(character) || is_lower_letter(character); }

bool is_upper_letter(std::string_view character) {
  if (ascii(character)) return character[0] >= 'A' && character[0] <= 'Z';
  static const Pattern upper = compile("^[\\p{Lu}\\p{Lt}]$");
  return utf8_step(character).valid && matches(upper, character);
}

bool is_lower_letter(std::string_view character) {
  if (ascii(character)) return character[0] >= 'a' && character[0] <= 'z';
  static const Pattern lower = compile("^\\p{Ll}$");
  return utf8_step(character).valid && matches(lower, character);
}

bool is_space(std::string_view character) {
  const Utf8Step step = utf8_step(character);
  return step.valid && (is_white_space(step.character) || (step.character >= 0x1C && step.character <= 0x1F));
}

bool is_printable(std::string_view character) {
  if (ascii(character)) return character[0] >= ' ' && character[0] <= '~';
  static const Pattern hidden = compile("^[\\p{C}\\p{Z}]$");
  return utf8_step(character).valid && !matches(hidden, character);
}

}  // namespace tandem::jinja
