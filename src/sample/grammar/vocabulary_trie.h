// The texts of a vocabulary's tokens in one tree of bytes, so that what they begin with is looked at once.
#pragma once
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/sample/token_mask.h"
#include "src/text/tokenizer.h"

namespace tandem {

// Holds the tokens that text may become: those that `usable` allows, of a type that is text, and not empty. Tokens of
// one text are all there.
class VocabularyTrie {
 public:
  VocabularyTrie(const Tokenizer& tokenizer, const TokenMask& usable);

  // A byte of some token's text behind the bytes of its ancestors. Nodes lie in depth-first order, those below one
  // directly behind it up to `end`; so do tokens, by text, those below a node from `tokens_begin` to `tokens_end`.
  struct Node {
    std::int32_t end;                       // the first node that is not below this one
    std::int32_t tokens_begin, tokens_end;  // of ordered(), this node's own first
    std::uint16_t own;                      // tokens that end here
    std::uint16_t depth;                    // from 1
    std::uint16_t height;                   // of the longest token below, counted from this node
    std::uint8_t byte;
    // Where all tokens of the node and below are well-formed but for an unfinished last character: whether the node
    // ends a whole one, or begins one of several bytes.
    bool ends_character = false, begins_character = false;
    std::int32_t below = -1;  // of bytes_below(), for nodes with more than a few tokens
  };
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const TokenId> ordered() const { return ordered_; }
  const std::bitset<256>& bytes_below(int below) const { return below_[static_cast<std::size_t>(below)]; }
  int longest() const { return longest_; }  // bytes of a token

  // The text of a token; empty for one that is not in the tree.
  std::string_view text(TokenId id) const {
    if (static_cast<std::size_t>(id) + 1 >= begins_.size()) return {};
    const auto begin = begins_[static_cast<std::size_t>(id)];
    return std::string_view(texts_).substr(begin, begins_[static_cast<std::size_t>(id) + 1] - begin);
  }
  // The token of the most bytes that `text` begins with, the lowest id of several; -1 when there is none.
  TokenId longest_prefix(std::string_view text) const;
  std::size_t bytes() const;  // of memory

 private:
  void add_nodes();
  void sum_up();

  std::string texts_;  // of all tokens, by id
  std::vector<std::uint32_t> begins_;
  std::vector<TokenId> ordered_;
  std::vector<Node> nodes_;
  std::vector<std::bitset<256>> below_;
  int longest_ = 0;
};

}  // namespace tandem
