// What a model file says about its tokens: plain data, filled by the loader, read by tokenizers, masks and pair checks.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/types.h"

namespace tandem {

// tokenizer.ggml.token_type values.
enum class TokenType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// Whether plain text may become such a token: a control token is never the meaning of text, an unused one has none.
constexpr bool is_text(TokenType type) {
  return type == TokenType::normal || type == TokenType::user_defined || type == TokenType::byte;
}

struct Vocabulary {
  std::string model;                 // tokenizer.ggml.model: "gpt2" is byte-level BPE, "llama" SentencePiece
  std::string pre;                   // tokenizer.ggml.pre: names the pre-tokenizer pattern
  std::vector<std::string> tokens;   // the file's own strings (byte-level models: in the printable byte alphabet;
                                     // SentencePiece: U+2581 for a space, <0x0A> for a byte)
  std::vector<TokenType> types;      // one a token
  std::vector<std::string> merges;   // "left right", best first
  std::vector<float> scores;         // SentencePiece: one a token, the highest merges first
  bool add_space_prefix = false;     // SentencePiece: a text begins with a space more
  bool remove_extra_spaces = false;  // SentencePiece: runs of spaces become one, those at the ends of a text none
  bool add_bos = false;
  std::optional<TokenId> bos, eos, eot, eom;  // begin and end of sequence, end of turn and of message
  std::optional<TokenId> unknown, padding;

  int size() const { return static_cast<int>(tokens.size()); }
  // True for an id that may be generated: inside the vocabulary and not marked unused.
  bool usable(TokenId id) const { return id >= 0 && id < size() && types[id] != TokenType::unused; }
  bool is_control(TokenId id) const { return id >= 0 && id < size() && types[id] == TokenType::control; }
};

// How messages and reports name the kind of tokenizer, e.g. "gpt2/qwen2" or "llama".
std::string kind_of(const Vocabulary& vocabulary);

// Throws Error(model), naming `where` (a file), unless there are tokens, each with a type, and every special id is one.
void require_consistent(const Vocabulary& vocabulary, std::string_view where);

}  // namespace tandem
