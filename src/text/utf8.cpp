#include "src/text/utf8.h"

#include <cstdint>

namespace tandem {
namespace {

struct Lead {
  int continuations;        // bytes that must follow; -1: no character starts like this
  std::uint8_t low, high;   // range of the first of them; the others lie in 80..BF
  std::uint8_t value_bits;  // part of the code point in the lead byte
};

Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {0, 0, 0, byte};
  if (byte < 0xC2) return {-1, 0, 0, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF, static_cast<std::uint8_t>(byte & 0x1F)};
  if (byte < 0xF0) {
    const std::uint8_t low = byte == 0xE0 ? 0xA0 : 0x80, high = byte == 0xED ? 0x9F : 0xBF;
    return {2, low, high, static_cast<std::uint8_t>(byte & 0x0F)};
  }
  if (byte < 0xF5) {
    const std::uint8_t low = byte == 0xF0 ? 0x90 : 0x80, high = byte == 0xF4 ? 0x8F : 0xBF;
    return {3, low, high, static_cast<std::uint8_t>(byte & 0x07)};
  }
  return {-1, 0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  if (text.empty()) return {0, false, false, 0};
  const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
  if (lead.continuations < 0) return {1, false, false, 0};
  char32_t character = lead.value_bits;
  for (int i = 1; i <= lead.continuations; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    if (at == text.size()) return {at, false, true, 0};
    const auto byte = static_cast<std::uint8_t>(text[at]);
    const std::uint8_t low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {at, false, false, 0};
    character = character << 6 | (byte & 0x3F);
  }
  return {static_cast<std::size_t>(lead.continuations) + 1, true, false, character};
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (!step.valid) break;
    at += step.length;
  }
  return at;
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  for (std::size_t count = 1; count <= 3 && count <= text.size(); ++count) {
    const std::string_view tail = text.substr(text.size() - count);
    const auto byte = static_cast<std::uint8_t>(tail[0]);
    if (byte >= 0x80 && byte < 0xC0) continue;  // a continuation: its lead stands further left
    const Utf8Step step = utf8_step(tail);
    return step.incomplete ? count : 0;
  }
  return 0;
}

bool is_white_space(char32_t character) {
  switch (character) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return (character >= 0x09 && character <= 0x0D) || (character >= 0x2000 && character <= 0x200A);
  }
}

void append_utf8(std::string& out, char32_t character) {
  const auto continuation = [&](int shift) { out.push_back(static_cast<char>(0x80 | (character >> shift & 0x3F))); };
  if (character < 0x80) {
    out.push_back(static_cast<char>(character));
  } else if (character < 0x800) {
    out.push_back(static_cast<char>(0xC0 | character >> 6));
    continuation(0);
  } else if (character < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | character >> 12));
    continuation(6);
    continuation(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | character >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace tandem
