#include "draft/retokenize_text.h"

#include <algorithm>

#include "src/text/utf8.h"

namespace tandem {
namespace {

// Committed tokens that are encoded again with what is drafted behind them: enough for the tokenizer to be where it was
// by the seam, wherever in a word it begins.
constexpr int kLookBack = 16;

// The share of last tokens that stay when more text comes: of English in SmolLM2's pieces 0.9 in Qwen's tokens, of C++
// and German 0.75, of Chinese 0.6.
constexpr double kStays = 0.85;

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::optional<TokenId> main_end(const Vocabulary& vocabulary) {
  if (vocabulary.eot) return vocabulary.eot;
  if (vocabulary.eos) return vocabulary.eos;
  const std::vector<TokenId> ends = end_ids(vocabulary);
  return ends.empty() ? std::nullopt : std::optional(ends.front());
}

}  // namespace

ControlMap::ControlMap(const Vocabulary& from, const Vocabulary& to) {
  std::unordered_map<std::string_view, TokenId> controls;
  for (TokenId id = 0; id < to.size(); ++id) {
    if (to.types[id] == TokenType::control) controls.emplace(to.tokens[id], id);
  }
  for (TokenId id = 0; id < from.size(); ++id) {
    if (from.types[id] != TokenType::control) continue;
    if (const auto same = controls.find(from.tokens[id]); same != controls.end()) counterparts_[id] = same->second;
  }
  if (const auto end = main_end(to)) {
    for (const TokenId id : end_ids(from)) counterparts_.emplace(id, *end);
  }
}

TokenMask drafting_mask(const Tokenizer& draft) {
  const Vocabulary& words = draft.vocabulary();
  std::vector<bool> usable(words.tokens.size());
  for (TokenId id = 0; id < words.size(); ++id) usable[id] = words.usable(id) && !draft.bytes(id).empty();
  for (const TokenId id : end_ids(words)) usable[id] = true;
  return TokenMask(usable);
}

Translation::Translation(const Tokenizer& target, const Tokenizer& draft)
    : target_(target), draft_(draft), controls_(target.vocabulary(), draft.vocabulary()) {
  reset();
}

void Translation::reset() {
  followed_.clear();
  ids_.clear();
  open_.clear();
  end_.clear();
  place_ = target_place_ = Place::begins;
  const Vocabulary& words = draft_.vocabulary();
  if (words.add_bos && words.bos) ids_.push_back(*words.bos);
  settled_ = ids_.size();
}

std::span<const TokenId> Translation::follow(std::span<const TokenId> tokens, std::size_t ahead) {
  const std::span<const TokenId> committed = tokens.first(tokens.size() - ahead);
  const bool grown =
      committed.size() >= followed_.size() && std::equal(followed_.begin(), followed_.end(), committed.begin());
  if (!grown) reset();
  for (const TokenId token : committed.subspan(followed_.size())) add(token);
  settle();
  end_ = open_;
  const Place place = target_place_;
  for (const TokenId token : tokens.last(ahead)) add_text(end_, token);
  target_place_ = place;
  encode(end_);
  return ids_;
}

// The text of a target token, less the space that the target puts in front of every text.
void Translation::add_text(std::string& text, TokenId token) {
  std::string_view bytes = target_.bytes(token);
  if (target_.adds_space() && target_place_ == Place::begins && bytes.starts_with(' ')) bytes.remove_prefix(1);
  target_place_ = Place::goes_on;
  text += bytes;
}

void Translation::encode(const std::string& text) {
  const std::vector<TokenId> rest = draft_.encode(text, Specials::literal, place_);
  ids_.insert(ids_.end(), rest.begin(), rest.end());
}

void Translation::add(TokenId token) {
  if (target_.bytes(token).empty()) {
    target_place_ = Place::begins;
    // Text before and after a control token is encoded apart, as the draft saw it in training.
    if (const auto counterpart = controls_(token)) {
      ids_.resize(settled_);
      encode(open_);
      open_.clear();
      place_ = Place::begins;
      const bool again = followed_.empty() && !ids_.empty() && ids_.back() == *counterpart;  // its BOS is there already
      if (!again) ids_.push_back(*counterpart);
      settled_ = ids_.size();
    }
  } else {
    add_text(open_, token);
  }
  followed_.push_back(token);
}

// Encodes for good what no further text can change.
void Translation::settle() {
  ids_.resize(settled_);
  const OpenEncoding encoding = draft_.encode_open(open_, place_);
  if (encoding.settled_bytes > 0) place_ = Place::goes_on;
  settled_ += encoding.settled_ids;
  ids_.insert(ids_.end(), encoding.ids.begin(),
              encoding.ids.begin() + static_cast<std::ptrdiff_t>(encoding.settled_ids));
  open_.erase(0, encoding.settled_bytes);
}

bool Translation::complete() const {
  std::string_view wanted = std::string_view(end_).substr(end_.size() - incomplete_utf8_tail(end_));
  for (std::size_t i = ids_.size(); i > settled_ && !wanted.empty(); --i) {
    const std::string_view bytes = draft_.bytes(ids_[i - 1]);
    const std::size_t common = std::min(bytes.size(), wanted.size());
    if (!bytes.ends_with(wanted.substr(wanted.size() - common))) return false;
    wanted.remove_suffix(common);
  }
  return wanted.empty();
}

void Continuation::begin(std::span<const TokenId> committed) {
  text_.clear();
  drafted_.clear();
  candidates_.clear();
  broken_ = false;
  std::size_t from = committed.size();
  for (int count = 0; from > 0; ++count) {
    const std::string_view bytes = target_.bytes(committed[from - 1]);
    if (bytes.empty()) break;  // a control token: the text begins anew behind it
    // Beyond the look-back only to reach the start of a character.
    if (count >= kLookBack && !continues_character(target_.bytes(committed[from]).front())) break;
    --from;
  }
  for (const TokenId token : committed.subspan(from)) text_ += target_.bytes(token);
  seam_ = text_.size();
  // Nothing stands before what is drafted: it will have the space that the target puts in front of a text.
  if (from == committed.size() && target_.adds_space()) text_.push_back(' ');
}

void Continuation::add(std::string_view bytes, double probability) {
  drafted_.push_back({text_.size(), probability});
  text_ += bytes;
  encode();
  if (!candidates_.empty()) candidates_.back().confidence *= kStays;
}

void Continuation::finish(TokenId end, double probability) {
  encode();
  const bool unfinished = incomplete_utf8_tail(text_) > 0;
  if (!broken_ && !unfinished) candidates_.push_back({end, probability});
}

void Continuation::encode() {
  candidates_.clear();
  broken_ = true;
  const std::string_view text = std::string_view(text_).substr(0, text_.size() - incomplete_utf8_tail(text_));
  std::size_t at = 0;
  // The bytes of tokens hold the space that begins a text already.
  for (const TokenId token : target_.encode(text, Specials::literal, Place::goes_on)) {
    const std::string_view bytes = target_.bytes(token);
    const std::size_t end = at + bytes.size();
    // A byte that the target has no token for was replaced; the text behind it is another one.
    if (bytes.empty() || text.compare(at, bytes.size(), bytes) != 0) return;
    if (at < seam_ && end > seam_) return;
    if (at >= seam_) candidates_.push_back({token, confidence(at, end)});
    at = end;
  }
  broken_ = false;
}

// A token stands if all drafted pieces that begin in it do.
double Continuation::confidence(std::size_t begin, std::size_t end) const {
  double probability = 1;
  for (const Drafted& piece : drafted_) {
    if (piece.begin >= begin && piece.begin < end) probability *= piece.probability;
  }
  return probability;
}

}  // namespace tandem
