// Text <-> token ids.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/special_tokens.h"
#include "src/text/vocabulary.h"

namespace tandem {

enum class Specials { literal, parse };  // whether text that spells a control token becomes that token

// Whether bytes begin a text or go on with one: some models put a space in front of a text.
enum class Place { begins, goes_on };

// Ids of a text that may go on, and how many of them stay whatever follows: for any bytes `more`, the ids of
// text + more are the first `settled_ids` and then those of text[settled_bytes..] + more, which goes on.
struct OpenEncoding {
  std::vector<TokenId> ids;
  std::size_t settled_ids = 0, settled_bytes = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of any bytes (UTF-8 or not); never throws for content. Adds no BOS. The time is that of sorting the text: a
  // little more than linear. What follows a control token begins a text.
  virtual std::vector<TokenId> encode(std::string_view bytes, Specials specials, Place place) const = 0;
  std::vector<TokenId> encode(std::string_view bytes, Specials specials) const {
    return encode(bytes, specials, Place::begins);
  }

  // encode() of plain text (Specials::literal) that may go on.
  virtual OpenEncoding encode_open(std::string_view bytes, Place place) const = 0;

  // Whether a text that begins is encoded with a space more in front of it, which its tokens then hold.
  virtual bool adds_space() const { return false; }

  // The bytes of one token, as they go into output text. Control tokens give their own spelling when `show_control`,
  // else nothing. Ids outside the vocabulary give nothing.
  virtual std::string_view bytes(TokenId id, bool show_control = false) const = 0;

  virtual const Vocabulary& vocabulary() const = 0;

  // Finds the control tokens that text of a chat template spells.
  virtual const SpecialTokens& control_tokens() const = 0;

  // Ids with BOS in front when the model asks for one and the ids do not start with it already.
  std::vector<TokenId> with_bos(std::vector<TokenId> ids) const;
  std::vector<TokenId> encode_prompt(std::string_view bytes, Specials specials) const {
    return with_bos(encode(bytes, specials));
  }

  // The bytes of tokens that go on with a text, as a stream of them gives it. Of tokens that begin one, less the space
  // that adds_space() put there.
  std::string decode(const std::vector<TokenId>& ids, bool show_control = false, Place place = Place::goes_on) const;
};

// Picks the tokenizer for `vocabulary.model` and `vocabulary.pre`; `where` (a file name) begins error messages.
// Throws Error(model) for a kind or pre-tokenizer it does not know, naming those it does, and for a vocabulary whose
// parts do not fit together.
std::unique_ptr<Tokenizer> make_tokenizer(Vocabulary vocabulary, std::string_view where);

// Ids that end an answer: eos, eot, eom, and the control tokens that models use as end marks (is_end_mark), where the
// vocabulary marks them control. Ascending.
std::vector<TokenId> end_ids(const Vocabulary& vocabulary);

// Throws Error(model) unless draft and target vocabularies agree token by token. Ids past the shorter vocabulary are
// allowed when marked unused (padding); any other difference is refused naming both sizes and the first differing id.
void require_same_vocabulary(const Vocabulary& target, const Vocabulary& draft, std::string_view target_name,
                             std::string_view draft_name);

}  // namespace tandem
