// Turns committed tokens into text for a reader: holds back incomplete UTF-8 and anything that may become a stop
// string.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/tokenizer.h"

namespace tandem {

// Where generation must stop inside what was pushed so far.
struct StopMatch {
  int tokens_kept;  // tokens pushed so far that remain, counting the ones that complete a stop string
  bool by_string;   // a stop string (true) or an end id (false)
};

class TextStream {
 public:
  // `end_ids` stop silently (no text); `stop_strings` stop before their first byte. Empty strings are refused.
  TextStream(const Tokenizer& tokenizer, std::vector<TokenId> end_ids, std::vector<std::string> stop_strings);

  // Adds one committed token. Returns the match when this token completes a stop; nothing may be pushed after one.
  // A stop found earliest in the text wins; an end id ends the text where it stands.
  std::optional<StopMatch> push(TokenId id);

  // Text that is certain by now: complete UTF-8 and not a prefix of a stop string. Each byte is returned once.
  std::string take();

  // The rest at the end of generation: held-back text that did not become a stop, raw bytes even if incomplete UTF-8.
  std::string finish();

  // All text so far after the cut of a stop, as raw bytes (valid once finished).
  const std::string& text() const;

 private:
  std::size_t certain_bytes() const;

  const Tokenizer& tokenizer_;
  std::vector<TokenId> end_ids_;
  std::vector<std::string> stop_strings_;
  std::size_t longest_stop_ = 0;  // bytes
  std::string text_;              // all bytes, cut at a stop
  std::size_t taken_ = 0;         // bytes of text_ already returned
  int pushed_ = 0;                // tokens
  bool stopped_ = false;
};

// `bytes` with U+FFFD for each maximal invalid part, as the Unicode standard recommends (section 3.9, "substitution of
// maximal subparts").
std::string to_valid_utf8(std::string_view bytes);

}  // namespace tandem
