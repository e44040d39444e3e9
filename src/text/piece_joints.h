// Which two characters may stand side by side inside a token: where they may not, a text falls into parts that are
// tokenized as if each stood alone.
#pragma once
#include <bitset>
#include <cstddef>
#include <memory>
#include <string_view>

#include "src/text/utf8.h"

namespace tandem {

// utf8_step() of text that falls into byte tokens where it is not UTF-8. A byte F5 to FF, which no UTF-8 has, takes the
// three behind it along, as llama.cpp reads it; a character that is cut short leaves what follows alone.
Utf8Step byte_token_step(std::string_view text);

// A set of pairs that may hold a few more than were put in (a bit a hash), so that a seam can be missed, never
// invented.
class PieceJoints {
 public:
  PieceJoints() : bits_(std::make_unique<Bits>()) {}

  // The neighbouring characters of a piece. A space counts as U+2581, which stands for it in pieces.
  void add(std::string_view piece);

  // False only if no piece has these two side by side.
  bool may_join(char32_t left, char32_t right) const { return bits_->test(place_of(left, right)); }

  // The last place in `text` that no token of it can span whatever comes behind the text; 0 when there is none. Bytes
  // that are not UTF-8 are tokens of their own.
  std::size_t last_seam(std::string_view text) const;

 private:
  static constexpr std::size_t kBits = std::size_t{1} << 23;  // 1 MB: 262,144 pieces of many scripts fill 4 %
  using Bits = std::bitset<kBits>;
  static std::size_t place_of(char32_t left, char32_t right);

  std::unique_ptr<Bits> bits_;
};

}  // namespace tandem
