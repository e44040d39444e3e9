// What Python's str methods know of characters beyond ASCII.
#pragma once
#include "src/text/jinja/marked_text.h"

namespace tandem::jinja {

enum class LetterCase { lower, upper, title };

// One character in another case; throws Problem for the few whose form is several characters or hangs on neighbours.
std::string in_case(std::string_view character, LetterCase wanted);

// The text with every character in one case, its marks kept.
MarkedText in_case(const MarkedText& text, LetterCase wanted);
// The first character in title case, the others in lower case, as str.capitalize.
MarkedText capitalized(const MarkedText& text);
// Every letter after a letter in lower case, every other letter in title case, as str.title.
MarkedText titled(const MarkedText& text);

bool is_letter(std::string_view character);
bool is_upper_letter(std::string_view character);
bool is_lower_letter(std::string_view character);
bool is_space(std::string_view character);      // str.isspace
bool is_printable(std::string_view character);  // str.isprintable

}  // namespace tandem::jinja
