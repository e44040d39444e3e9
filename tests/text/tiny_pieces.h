// Small SentencePiece vocabularies made in code.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "src/text/vocabulary.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem {

// A piece with its score; spaces are written as such.
inline TokenId add_piece(Vocabulary& v, std::string_view text, TokenType type, float score = 0) {
  std::string piece;
  for (const char c : text) piece += c == ' ' && type == TokenType::normal ? "\u2581" : std::string(1, c);
  v.scores.push_back(score);
  return add(v, piece, type);
}

// <unk>, <s>, </s>, the 256 byte tokens, then `pieces` as normal ones, the first merging first.
inline Vocabulary tiny_pieces(const std::vector<std::string>& pieces, bool with_bytes = true) {
  Vocabulary v;
  v.model = "llama";
  v.unknown = add_piece(v, "<unk>", TokenType::unknown);
  v.bos = add_piece(v, "<s>", TokenType::control);
  v.eos = add_piece(v, "</s>", TokenType::control);
  v.add_bos = true;
  for (int byte = 0; byte < 256 && with_bytes; ++byte) add_piece(v, fmt::format("<0x{:02X}>", byte), TokenType::byte);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    add_piece(v, pieces[i], TokenType::normal, -static_cast<float>(i));
  }
  return v;
}

}  // namespace tandem
