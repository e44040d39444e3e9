// Small byte-level vocabularies made in code.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/utf8.h"
#include "src/text/vocabulary.h"

namespace tandem {

// `bytes` in GPT-2's printable alphabet. Bytes 0x21..0x7E, 0xA1..0xAC and 0xAE..0xFF stand for themselves, the 68
// others for U+0100 onwards in order.
inline std::string in_alphabet(std::string_view bytes) {
  std::string out;
  for (const char raw : bytes) {
    const int byte = static_cast<unsigned char>(raw);
    const auto prints = [](int b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE; };
    char32_t character = static_cast<char32_t>(byte);
    if (!prints(byte)) {
      character = 0x100;
      for (int b = 0; b < byte; ++b) character += prints(b) ? 0 : 1;
    }
    append_utf8(out, character);
  }
  return out;
}

// Ids 0..255 are the single bytes; then one token a merge (given as raw bytes, best first); then tokens added by `add`.
inline Vocabulary tiny_vocabulary(std::string pre,
                                  const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(in_alphabet(std::string(1, static_cast<char>(byte))));
  }
  for (const auto& [left, right] : merges) {
    vocabulary.merges.push_back(in_alphabet(left) + " " + in_alphabet(right));
    vocabulary.tokens.push_back(in_alphabet(left + right));
  }
  vocabulary.types.assign(vocabulary.tokens.size(), TokenType::normal);
  return vocabulary;
}

// Appends a token and returns its id.
inline TokenId add(Vocabulary& vocabulary, std::string_view text, TokenType type) {
  vocabulary.tokens.emplace_back(text);
  vocabulary.types.push_back(type);
  return vocabulary.size() - 1;
}

}  // namespace tandem
