// Shows in an answer what drafts wrote: terminal colours around the text of accepted draft tokens.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "src/engine/generation.h"

namespace tandem {

class DraftColours {
 public:
  explicit DraftColours(bool on) : on_(on) {}

  // The next bytes of the answer, with colours where they are on. `origins` has all tokens that wrote them. A character
  // that two tokens share takes the colour of the first.
  std::string paint(std::string_view text, std::span<const TextOrigin> origins);

  // What the colours stand for, in these colours.
  static std::string legend();

 private:
  bool on_;
  std::size_t painted_ = 0;  // bytes
  std::size_t next_ = 0;     // the token that wrote the next byte
};

// Whether to colour what goes to a descriptor: `when` is auto (a terminal, unless NO_COLOR is set), always or never.
bool wants_colour(std::string_view when, int descriptor);

}  // namespace tandem
