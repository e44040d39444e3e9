#include "src/text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <utility>

#include "src/base/error.h"
#include "src/text/sentencepiece_model.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// Runs of spaces as one, none at the ends.
std::string without_extra_spaces(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (byte != ' ' || (!out.empty() && out.back() != ' ')) out.push_back(byte);
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(Vocabulary vocabulary, std::string_view where)
    : vocabulary_(std::move(vocabulary)),
      marks_(vocabulary_, Spelled::marks),
      control_(vocabulary_, Spelled::control),
      processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  const auto status = processor_->LoadFromSerializedProto(write_sentencepiece_model(vocabulary_, where));
  if (!status.ok()) fail(ErrorKind::model, "{}: SentencePiece: {}", where, status.message());
  read_bytes();
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

void SentencePieceTokenizer::read_bytes() {
  offsets_.reserve(vocabulary_.tokens.size() + 1);
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    offsets_.push_back(text_.size());
    const std::string_view token = vocabulary_.tokens[id];
    switch (vocabulary_.types[id]) {
      case TokenType::byte:
        text_.push_back(static_cast<char>(byte_of_piece(token)));
        byte_ids_[byte_of_piece(token)] = id;
        has_bytes_ = true;
        continue;
      case TokenType::normal:
      case TokenType::user_defined:
        text_ += with_spaces(token);
        break;
      default:
        text_ += token;
    }
    if (takes_part(vocabulary_, id)) joints_.add(token);
  }
  offsets_.push_back(text_.size());
}

std::string_view SentencePieceTokenizer::bytes(TokenId id, bool show_control) const {
  if (id < 0 || id >= vocabulary_.size()) return {};
  if (!show_control && !is_text(vocabulary_.types[id])) return {};
  return std::string_view(text_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
}

std::vector<TokenId> SentencePieceTokenizer::encode(std::string_view bytes, Specials specials, Place place) const {
  std::vector<TokenId> ids;
  std::size_t at = 0;
  while (specials == Specials::parse && at < bytes.size()) {
    const SpecialTokens::Match match = marks_.find(bytes, at);
    if (match.length == 0) break;
    encode_text(bytes.substr(at, match.begin - at), place, ids);
    ids.push_back(match.id);
    at = match.begin + match.length;
    place = vocabulary_.is_control(match.id) ? Place::begins : Place::goes_on;
  }
  encode_text(bytes.substr(at), place, ids);
  return ids;
}

// A token cannot hold two neighbouring characters that no piece has side by side. Merging never looks across such a
// seam, and within each part it goes in the same order (by score, then from the left) as in the part alone. Pieces that
// are matched whole end at a seam too. What can differ is how the library joins unknown characters, and which spaces
// stay where extra ones are removed.
OpenEncoding SentencePieceTokenizer::encode_open(std::string_view bytes, Place place) const {
  OpenEncoding out;
  const bool in_parts = has_bytes_ && !vocabulary_.remove_extra_spaces;
  out.settled_bytes = in_parts ? joints_.last_seam(bytes) : 0;
  if (out.settled_bytes > 0) {
    encode_text(bytes.substr(0, out.settled_bytes), std::exchange(place, Place::goes_on), out.ids);
    out.settled_ids = out.ids.size();
  }
  encode_text(bytes.substr(out.settled_bytes), place, out.ids);
  return out;
}

// The text with the spaces that the model was trained on; in `storage` where they are not its own.
std::string_view SentencePieceTokenizer::spaced(std::string_view text, Place place, std::string& storage) const {
  if (vocabulary_.remove_extra_spaces) text = storage = without_extra_spaces(text);
  if (text.empty() || place == Place::goes_on || !vocabulary_.add_space_prefix) return text;
  std::string prefixed;
  prefixed.reserve(text.size() + 1);
  prefixed.append(1, ' ').append(text);
  return storage = std::move(prefixed);
}

void SentencePieceTokenizer::encode_text(std::string_view text, Place place, std::vector<TokenId>& ids) const {
  std::string storage;
  text = spaced(text, place, storage);
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0) encode_valid(text.substr(0, valid), ids);
    text.remove_prefix(valid);
    if (text.empty()) break;
    const std::size_t invalid = (has_bytes_ ? byte_token_step(text) : utf8_step(text)).length;
    if (has_bytes_) {
      for (const char byte : text.substr(0, invalid)) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    } else {
      encode_valid(kReplacement, ids);
    }
    text.remove_prefix(invalid);
  }
}

void SentencePieceTokenizer::encode_valid(std::string_view text, std::vector<TokenId>& ids) const {
  std::vector<int> found;
  const auto status = processor_->Encode(text, &found);
  if (!status.ok()) fail(ErrorKind::input, "SentencePiece: {}", status.message());
  for (const int id : found) {
    if (id < vocabulary_.size()) ids.push_back(id);  // else the unknown token that the vocabulary does not have
  }
}

}  // namespace tandem
