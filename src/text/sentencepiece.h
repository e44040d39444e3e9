// SentencePiece byte-pair encoding, the tokenizer of Llama 2, Mistral and Gemma, through the SentencePiece library.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/piece_joints.h"
#include "src/text/special_tokens.h"
#include "src/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace tandem {

class SentencePieceTokenizer : public Tokenizer {
 public:
  // Takes what require_consistent() lets through. `where` (a file name) begins error messages. Throws Error(model) when
  // scores or byte tokens are missing or malformed.
  SentencePieceTokenizer(Vocabulary vocabulary, std::string_view where);
  ~SentencePieceTokenizer() override;

  // Characters without a piece, and bytes that are not UTF-8, become byte tokens; in a vocabulary without those, the
  // unknown token (a part that is not UTF-8 as U+FFFD), or nothing if there is none. U+2581 is taken for a space.
  std::vector<TokenId> encode(std::string_view bytes, Specials specials, Place place) const override;
  OpenEncoding encode_open(std::string_view bytes, Place place) const override;
  std::string_view bytes(TokenId id, bool show_control) const override;
  bool adds_space() const override { return vocabulary_.add_space_prefix; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const SpecialTokens& control_tokens() const override { return control_; }

 private:
  void read_bytes();
  std::string_view spaced(std::string_view text, Place place, std::string& storage) const;
  void encode_text(std::string_view text, Place place, std::vector<TokenId>& ids) const;
  void encode_valid(std::string_view text, std::vector<TokenId>& ids) const;

  const Vocabulary vocabulary_;
  SpecialTokens marks_, control_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  PieceJoints joints_;
  std::string text_;                  // what every token stands for, one after another
  std::vector<std::size_t> offsets_;  // token i is text_[offsets_[i], offsets_[i + 1])
  std::array<TokenId, 256> byte_ids_;
  bool has_bytes_ = false;  // all 256
};

}  // namespace tandem
