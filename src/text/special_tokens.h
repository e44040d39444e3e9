// Finds tokens that are recognised by their spelling before any other tokenizing.
#pragma once
#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/text/vocabulary.h"

namespace tandem {

// Which tokens of a vocabulary text can spell.
enum class Spelled {
  user_defined,  // plain text that the model wants whole: recognised in any text
  control,       // control tokens only: what template text is searched for
  marks,         // those, unknown tokens, and end marks that the file forgot to mark
  all            // marks and user-defined ones
};

// Whether this is one of the texts by which models mark the end of an answer or a turn, as `<|im_end|>`.
bool is_end_mark(std::string_view token);

class SpecialTokens {
 public:
  struct Match {
    std::size_t begin, length;  // bytes
    TokenId id;
  };

  // Keeps views into `vocabulary`, which must outlive this object.
  SpecialTokens(const Vocabulary& vocabulary, Spelled spelled);

  // The first token at or after `from`, the longest one if several start there. Length 0: none up to the end.
  Match find(std::string_view text, std::size_t from) const;

  std::size_t longest() const { return longest_; }  // bytes; 0 without tokens

 private:
  std::unordered_map<std::string_view, TokenId> ids_;
  std::size_t longest_ = 0;
  std::array<std::vector<std::size_t>, 256> lengths_;  // by first byte: lengths in use, longest first
};

}  // namespace tandem
