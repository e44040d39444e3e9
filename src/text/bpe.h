// Byte-level byte-pair encoding, the tokenizer of GPT-2, Qwen, Llama 3 and SmolLM.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/text/pretokenizer.h"
#include "src/text/special_tokens.h"
#include "src/text/tokenizer.h"

namespace tandem {

class BpeTokenizer : public Tokenizer {
 public:
  // Takes what require_consistent() lets through. `where` (a file name) begins error messages. Throws Error(model) for
  // malformed merges and for a pre-tokenizer it does not know.
  BpeTokenizer(Vocabulary vocabulary, std::string_view where);

  // Bytes that are not UTF-8 are merged among themselves. A byte for which the vocabulary has no token (SmolLM2 lacks
  // 21 of them) is encoded as U+FFFD, or left out if that has none either.
  std::vector<TokenId> encode(std::string_view bytes, Specials specials, Place place) const override;
  OpenEncoding encode_open(std::string_view bytes, Place place) const override;
  std::string_view bytes(TokenId id, bool show_control) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const SpecialTokens& control_tokens() const override { return control_; }

 private:
  struct Merge {
    std::int32_t rank;  // lower merges first
    TokenId result;
  };
  struct MixBits {
    std::size_t operator()(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> 20; }
  };
  struct Scratch;
  struct Boundary;  // the end of a piece, which merging never crosses

  void read_bytes();
  void read_merges(std::string_view where);
  const Merge* merge_of(TokenId left, TokenId right) const;
  void encode_all(std::string_view bytes, const SpecialTokens& spelled, Scratch& scratch,
                  std::vector<TokenId>& ids) const;
  void encode_text(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& ids) const;
  void merge_all(Scratch& scratch) const;

  const Vocabulary vocabulary_;
  Pretokenizer pretokenizer_;
  SpecialTokens user_defined_, control_, all_specials_;
  std::string text_;                  // what every token stands for, one after another
  std::vector<std::size_t> offsets_;  // token i is text_[offsets_[i], offsets_[i + 1])
  std::array<std::vector<TokenId>, 256> byte_ids_;
  std::unordered_map<std::uint64_t, Merge, MixBits> merges_;    // by left id << 32 | right id
  std::unordered_map<std::string_view, TokenId> whole_pieces_;  // only where whole pieces come first
};

}  // namespace tandem
