// Logits over the whole vocabulary from an output head that holds some of its rows.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "src/base/logits.h"

namespace tandem {

// A token without a row has the logit -inf, so a draft never proposes it and stays lossless (FR-Spec, Zhao et al. 2025,
// arXiv 2502.14856). Besides the rows chosen at load, tokens that the text itself holds get one: texts repeat their own
// rare words.
class TrimmedHead {
 public:
  // Most tokens of a text that get a row of their own; the latest ones count.
  static constexpr int kTextRows = 1024;

  // `tokens`: of the rows chosen at load, ascending. `table`: all rows, [vocab, width], for lookup. `positions`: length
  // of text for which memory is taken at once. `soft_cap`: of the logits, 0 = none. The first three outlive this.
  TrimmedHead(std::span<const TokenId> tokens, const Weight& table, Backend& backend, int positions,
              float soft_cap = 0);

  // Gives rows to the tokens of this text, each below the vocabulary's size, and to those of no other. Linear in what
  // was added since the last call when the text has only grown.
  void follow(std::span<const TokenId> text);

  // From the logits of the rows chosen at load, capped, [rows, tokens], and the head's input, [rows, width], to [rows,
  // vocab]. Valid until the next call.
  Logits expand(Rows logits, Rows hidden);

  // Tokens that have a row besides those chosen at load, in no order.
  std::span<const TokenId> text_tokens() const { return text_tokens_; }

 private:
  void add(TokenId token);
  void erase_logits(TokenId token);
  std::span<float> text_row(std::size_t i) { return std::span(text_rows_).subspan(i * width_, width_); }

  std::span<const TokenId> tokens_;
  const Weight& table_;
  Backend& backend_;
  std::size_t vocab_, width_;
  float soft_cap_;
  std::vector<bool> has_row_;          // by token
  std::vector<TokenId> text_;          // what follow() has seen
  std::vector<TokenId> text_tokens_;   // at most kTextRows
  std::vector<float> text_rows_;       // [text_tokens_, width]
  std::size_t oldest_ = 0;             // of text_tokens_ once they are full
  std::unique_ptr<Buffer> looked_up_;  // [1, width]
  std::vector<float> logits_;          // [rows of the largest pass so far, vocab]; -inf where a token has no row
};

}  // namespace tandem
