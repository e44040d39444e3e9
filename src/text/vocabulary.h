// What a model file says about its tokens: plain data, filled by the loader, read by tokenizers, masks and pair checks.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/types.h"

namespace tandem {

// tokenizer.ggml.token_type values.
enum class TokenType : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Vocabulary {
  std::string model;                // tokenizer.ggml.model: "gpt2" is byte-level BPE
  std::string pre;                  // tokenizer.ggml.pre: names the pre-tokenizer pattern
  std::vector<std::string> tokens;  // the file's own strings (byte-level models: in the printable byte alphabet)
  std::vector<TokenType> types;     // one a token
  std::vector<std::string> merges;  // "left right", best first
  bool add_bos = false;
  std::optional<TokenId> bos, eos, eot;  // begin of sequence, end of sequence, end of turn

  int size() const { return static_cast<int>(tokens.size()); }
  // True for an id that may be generated: inside the vocabulary and not marked unused.
  bool usable(TokenId id) const { return id >= 0 && id < size() && types[id] != TokenType::unused; }
};

}  // namespace tandem
