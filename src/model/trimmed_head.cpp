#include "src/model/trimmed_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// In sums that need not wait for each other, which a compiler turns into vectors; their order follows from the size.
float dot(std::span<const float> a, std::span<const float> b) {
  std::array<float, 16> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  float total = 0;
  for (const float part : sums) total += part;
  return total;
}

}  // namespace

TrimmedHead::TrimmedHead(std::span<const TokenId> tokens, const Weight& table, Backend& backend, int positions,
                         float soft_cap)
    : tokens_(tokens),
      table_(table),
      backend_(backend),
      vocab_(static_cast<std::size_t>(table.rows)),
      width_(static_cast<std::size_t>(table.cols)),
      soft_cap_(soft_cap),
      has_row_(vocab_),
      text_rows_(kTextRows * width_),
      looked_up_(backend.allocate(width_ * sizeof(float))) {
  for (const TokenId token : tokens) has_row_[static_cast<std::size_t>(token)] = true;
  text_.reserve(static_cast<std::size_t>(positions));
  text_tokens_.reserve(kTextRows);
}

void TrimmedHead::follow(std::span<const TokenId> text) {
  const bool grown = text.size() >= text_.size() && std::equal(text_.begin(), text_.end(), text.begin());
  if (!grown) {
    for (const TokenId token : text_tokens_) erase_logits(token);
    text_tokens_.clear();
    text_.clear();
    oldest_ = 0;
  }
  for (const TokenId token : text.subspan(text_.size())) {
    if (!has_row_[static_cast<std::size_t>(token)]) add(token);
    text_.push_back(token);
  }
}

void TrimmedHead::erase_logits(TokenId token) {
  const auto place = static_cast<std::size_t>(token);
  has_row_[place] = false;
  for (std::size_t i = place; i < logits_.size(); i += vocab_) logits_[i] = kNever;
}

void TrimmedHead::add(TokenId token) {
  std::size_t place = text_tokens_.size();
  if (place < kTextRows) {
    text_tokens_.push_back(token);
  } else {
    place = oldest_;
    oldest_ = (oldest_ + 1) % kTextRows;
    erase_logits(text_tokens_[place]);
    text_tokens_[place] = token;
  }
  const Rows row{reinterpret_cast<float*>(looked_up_->data()), 1, table_.cols, table_.cols};
  backend_.embed(row, table_, {&token, 1});
  std::ranges::copy(backend_.download(row), text_row(place).begin());
  has_row_[static_cast<std::size_t>(token)] = true;
}

Logits TrimmedHead::expand(Rows logits, Rows hidden) {
  const auto rows = static_cast<std::size_t>(logits.rows);
  if (logits_.size() < rows * vocab_) logits_.resize(rows * vocab_, kNever);
  const std::span<const float> chosen = backend_.download(logits);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<float> out = std::span(logits_).subspan(row * vocab_, vocab_);
    const std::span<const float> from = chosen.subspan(row * tokens_.size(), tokens_.size());
    for (std::size_t i = 0; i < tokens_.size(); ++i) out[static_cast<std::size_t>(tokens_[i])] = from[i];
  }
  const std::span<const float> input = backend_.download(hidden);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < text_tokens_.size(); ++i) {
      const float logit = dot(input.subspan(row * width_, width_), text_row(i));
      logits_[row * vocab_ + static_cast<std::size_t>(text_tokens_[i])] =
          soft_cap_ > 0 ? soft_cap_ * std::tanh(logit / soft_cap_) : logit;
    }
  }
  return {std::span(logits_).first(rows * vocab_), table_.rows};
}

}  // namespace tandem
