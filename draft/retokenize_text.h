// From the tokens of one vocabulary to those of another, by way of text.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/sample/token_mask.h"
#include "src/text/tokenizer.h"

namespace tandem {

// The control tokens of one vocabulary that have a counterpart in another: the one of the same spelling, or else, for
// an end mark, the other vocabulary's end mark.
class ControlMap {
 public:
  ControlMap(const Vocabulary& from, const Vocabulary& to);
  std::optional<TokenId> operator()(TokenId id) const {
    const auto found = counterparts_.find(id);
    return found == counterparts_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<TokenId, TokenId> counterparts_;
};

// Ids that a draft may draw for its text to be text: those that have bytes, and end marks.
TokenMask drafting_mask(const Tokenizer& draft);

// The committed tokens of the target, as the draft would have encoded their text. Control tokens without a counterpart
// are left out. What it gives is a function of the tokens alone, whether they came one by one or all at once.
class Translation {
 public:
  // Both outlive this.
  Translation(const Tokenizer& target, const Tokenizer& draft);

  // Ids in the draft's vocabulary for all of `tokens`, of which the last `ahead`, no control tokens, may not stay.
  // Linear in what was added since the last call when those that stay have only grown. Valid until the next call.
  std::span<const TokenId> follow(std::span<const TokenId> tokens, std::size_t ahead = 0);

  // False while the text ends within a character whose first bytes the draft has no tokens for: what it would write
  // then does not continue the text.
  bool complete() const;

  // True when what the draft writes next begins a text for it.
  bool begins() const { return place_ == Place::begins && end_.empty(); }

  void reset();

 private:
  void add(TokenId token);
  void add_text(std::string& text, TokenId token);
  void encode(const std::string& text);
  void settle();

  const Tokenizer& target_;
  const Tokenizer& draft_;
  ControlMap controls_;
  std::vector<TokenId> followed_;
  std::vector<TokenId> ids_;
  std::size_t settled_ = 0;             // of ids_
  std::string open_;                    // text behind the settled ids
  Place place_ = Place::begins;         // of open_
  Place target_place_ = Place::begins;  // of the next token's text, for the target
  std::string end_;                     // that and what is ahead
};

// What the draft writes behind the committed tokens, as target tokens that continue exactly those.
class Continuation {
 public:
  struct Candidate {
    TokenId token;
    double confidence;  // the draft's probability of the text that decides it
  };

  explicit Continuation(const Tokenizer& target) : target_(target) {}

  // Nothing is drafted yet behind these tokens.
  void begin(std::span<const TokenId> committed);
  // The draft wrote these bytes, with this probability.
  void add(std::string_view bytes, double probability);
  // The draft ended its text; `end` is the target's end mark.
  void finish(TokenId end, double probability);

  // Target tokens that the drafted text gives so far. A last token that more text may change has a confidence that says
  // so; the bytes of an unfinished character give none. Empty when the text does not go on where the committed tokens
  // end: the tokenizer would join what lies on both sides.
  std::span<const Candidate> candidates() const { return candidates_; }
  // More text would bring no further candidates.
  bool broken() const { return broken_; }

 private:
  struct Drafted {
    std::size_t begin;  // in text_
    double probability;
  };
  void encode();
  double confidence(std::size_t begin, std::size_t end) const;

  const Tokenizer& target_;
  std::string text_;  // the last committed tokens', then the drafted
  std::size_t seam_ = 0;
  std::vector<Drafted> drafted_;
  std::vector<Candidate> candidates_;
  bool broken_ = false;
};

}  // namespace tandem
