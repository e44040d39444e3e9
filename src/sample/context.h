// The committed tokens of one sequence, with what verification and drafting push on top for a while.
#pragma once
#include <span>
#include <vector>

#include "src/base/types.h"

namespace tandem {

class Context {
 public:
  void push(TokenId token) { tokens_.push_back(token); }
  void push(std::span<const TokenId> tokens) { tokens_.insert(tokens_.end(), tokens.begin(), tokens.end()); }
  void pop(int count) { tokens_.resize(tokens_.size() - static_cast<std::size_t>(count)); }
  void clear() { tokens_.clear(); }
  void reserve(std::size_t tokens) { tokens_.reserve(tokens); }
  std::span<const TokenId> tokens() const { return tokens_; }
  int size() const { return static_cast<int>(tokens_.size()); }
  // The position that keys noise for the next token: tokens kept in the conversation so far.
  std::uint32_t position() const { return dropped_ + static_cast<std::uint32_t>(tokens_.size()); }
  // Tokens that left the context at the front but still count for positions.
  void set_dropped(std::uint32_t dropped) { dropped_ = dropped; }

 private:
  std::vector<TokenId> tokens_;
  std::uint32_t dropped_ = 0;
};

}  // namespace tandem
