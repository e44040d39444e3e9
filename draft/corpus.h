// Texts beside the sequence itself that drafts may continue from: the user's own source tree, say.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "src/base/types.h"

namespace tandem {

// The tokens of some documents and the order of all their places by what stands before them: a suffix array of the
// reversed text, cut at kDeepest tokens. The places behind the longest match of a text then lie side by side, and
// three binary searches find them, however long the match is. 8 bytes a token, where a suffix automaton takes up to
// 128. Never changes, so any number of sequences may share it.
class Corpus {
 public:
  static constexpr TokenId kBorder = -1;  // stands before, between and behind documents; no match or draft crosses it
  static constexpr int kDeepest = 64;     // tokens before a place that are looked at

  Corpus() = default;  // no text
  // `tokens`: the documents, with a border before each and one at the end. Sorts: seconds for millions of tokens.
  // Throws Error(input) when the first or last is no border.
  explicit Corpus(std::vector<TokenId> tokens);
  // What tokens() and order() of an equal corpus gave, e.g. read from a file. Throws Error(file) for what no corpus of
  // ids below `vocabulary` can have given.
  Corpus(std::vector<TokenId> tokens, std::vector<std::int32_t> order, int vocabulary);

  // Places in order(), all behind the same `length` tokens. Empty when nothing matches.
  struct Match {
    int length = 0;
    std::size_t first = 0, last = 0;
    std::size_t places() const { return last - first; }
  };
  // The longest end of `text` that some document goes on from, kDeepest tokens at most. `probes`, if given, grows by
  // the number of places that were compared: at most 3 (log2(places) + 1).
  Match longest(std::span<const TokenId> text, std::int64_t* probes = nullptr) const;

  std::span<const TokenId> tokens() const { return tokens_; }
  // Indices into tokens() of tokens with at least one token of the same document before them.
  std::span<const std::int32_t> order() const { return order_; }
  std::size_t bytes() const { return tokens_.size() * sizeof(TokenId) + order_.size() * sizeof(std::int32_t); }

 private:
  std::vector<TokenId> tokens_;
  std::vector<std::int32_t> order_;
};

// How documents went on from the places of one match, token by token. Allocates nothing.
class CorpusWalk {
 public:
  // `corpus` outlives this.
  explicit CorpusWalk(const Corpus& corpus) : corpus_(corpus) {}

  // Begins behind the longest match of `text`; returns its length, 0 when there is none.
  int begin(std::span<const TokenId> text);

  // The token that most places go on with, and their share of those that were asked (all, or kAsked spread over them).
  // Nothing where every document ends.
  struct Next {
    TokenId token;
    double share;
  };
  std::optional<Next> next() const;
  // Goes on behind next(), from the places that agree with it.
  void advance();

 private:
  static constexpr std::size_t kAsked = 32;

  const Corpus& corpus_;
  std::array<std::int32_t, kAsked> places_{};  // indices into the corpus's tokens
  std::size_t count_ = 0;
};

}  // namespace tandem
