// Any bytes at all as a tokenizer.model of SentencePiece, the last ones as a text for it (their number is the very last
// byte): refused with Error(file) or Error(model), or a tokenizer that keeps its promises for that text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/text/sentencepiece_model.h"
#include "src/text/tokenizer.h"

namespace {

using tandem::OpenEncoding;
using tandem::Place;
using tandem::Specials;
using tandem::TokenId;
using tandem::Tokenizer;
using tandem::Vocabulary;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

bool has_bytes(const Vocabulary& vocabulary) {
  return std::find(vocabulary.types.begin(), vocabulary.types.end(), tandem::TokenType::byte) != vocabulary.types.end();
}

void check(const Tokenizer& tokenizer, std::string_view text) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const std::vector<TokenId> ids = tokenizer.encode(text, Specials::literal);
  for (const TokenId id : ids) require(vocabulary.usable(id) && !vocabulary.is_control(id));
  const OpenEncoding open = tokenizer.encode_open(text, Place::begins);
  require(open.ids == ids && open.settled_ids <= ids.size() && open.settled_bytes <= text.size());
  const bool keeps_all = has_bytes(vocabulary) && !vocabulary.remove_extra_spaces && text.find("\u2581") == text.npos;
  if (keeps_all) {
    require(tokenizer.decode(ids, true, Place::begins) == text);
    require(tokenizer.decode(tokenizer.encode(text, Specials::parse), true, Place::begins) == text);
  }
  for (const TokenId id : tokenizer.encode_prompt(text, Specials::parse)) require(vocabulary.usable(id));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string_view text;
  if (!input.empty() && static_cast<unsigned char>(input.back()) < input.size()) {
    const std::size_t length = static_cast<unsigned char>(input.back());
    text = input.substr(input.size() - 1 - length, length);
    input.remove_suffix(length + 1);
  }
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = tandem::make_tokenizer(tandem::read_sentencepiece_model(input, "fuzz.model"), "fuzz.model");
  } catch (const tandem::Error& error) {
    require(error.kind() == tandem::ErrorKind::file || error.kind() == tandem::ErrorKind::model);
    return 0;
  }
  check(*tokenizer, text);
  return 0;
}
