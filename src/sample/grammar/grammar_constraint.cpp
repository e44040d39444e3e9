#include "src/sample/grammar/grammar_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/text/text_stream.h"

namespace tandem {
namespace {

constexpr std::size_t kMostShown = 80;   // bytes of a text in messages
constexpr std::size_t kMostLikely = 64;  // bytes that are looked ahead for a likely token

std::string shown_byte(int byte) {
  if (byte == '"' || byte == '\\') return fmt::format("\\{}", static_cast<char>(byte));
  if (byte > 0x20 && byte < 0x7F) return std::string(1, static_cast<char>(byte));
  return byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : byte == ' ' ? "space" : fmt::format("\\x{:02x}", byte);
}

// Bytes as ranges, e.g. `0-9, a, \x80-\xbf`.
std::string shown(const ByteSet& bytes) {
  std::string text;
  for (std::size_t first = 0; first < bytes.size(); ++first) {
    if (!bytes[first]) continue;
    std::size_t last = first;
    while (last + 1 < bytes.size() && bytes[last + 1]) ++last;
    text += (text.empty() ? "" : ", ") + shown_byte(static_cast<int>(first));
    if (last > first) text += (last > first + 1 ? "-" : ", ") + shown_byte(static_cast<int>(last));
    first = last;
  }
  return text;
}

}  // namespace

void GrammarConstraint::begin(int prompt) {
  if (masks_->bytes() > kMostBytes) masks_->forget();
  prompt_ = prompt;
  tokens_.clear();
  follow(0);
}

// States behind the tokens from this one on.
void GrammarConstraint::follow(std::size_t from) {
  epoch_ = masks_->automaton().epoch();
  if (from == 0) states_.assign(1, masks_->automaton().start());
  states_.resize(from + 1);
  for (std::size_t i = from; i < tokens_.size(); ++i) states_.push_back(masks_->after(states_.back(), tokens_[i]));
}

int GrammarConstraint::state(const Context& context) {
  const std::span<const TokenId> answer = context.tokens().subspan(static_cast<std::size_t>(prompt_));
  const auto [mine, theirs] = std::ranges::mismatch(tokens_, answer);
  const bool stale = epoch_ != masks_->automaton().epoch();
  const std::size_t kept = stale ? 0 : static_cast<std::size_t>(mine - tokens_.begin());
  tokens_.resize(static_cast<std::size_t>(mine - tokens_.begin()));
  tokens_.insert(tokens_.end(), theirs, answer.end());
  follow(kept);
  return states_.back();
}

TokenId GrammarConstraint::likely(int state) {
  if (state == TokenMasks::kOver) return -1;
  Automaton& automaton = masks_->automaton();
  std::array<char, kMostLikely> text;
  std::size_t length = 0;
  for (; length < text.size() && state != Automaton::kRefused; ++length) {
    const std::optional<std::uint8_t> byte = automaton.forced(state);
    if (!byte) break;
    text[length] = static_cast<char>(*byte);
    state = automaton.next(state, *byte);
  }
  // A space before something open is mostly the beginning of the next token.
  if (length > 0 && length < text.size() && text[length - 1] == ' ') --length;
  return masks_->trie().longest_prefix({text.data(), length});
}

// A token has a byte at least.
std::optional<int> GrammarConstraint::most_left(int state) {
  if (state == TokenMasks::kOver) return std::nullopt;
  const std::optional<int> bytes = masks_->automaton().longest_rest(state);
  return bytes ? std::optional(*bytes + 1) : std::nullopt;
}

std::string GrammarConstraint::explain(const Context& context) {
  const int at = state(context);
  std::string text;
  for (const TokenId token : tokens_) text += masks_->trie().text(token);
  const bool is_cut = text.size() > kMostShown;
  if (is_cut) text.erase(0, text.size() - kMostShown);
  const std::string place = fmt::format("{}: behind {} tokens of the answer, \"{}{}\"", masks_->where(), tokens_.size(),
                                        is_cut ? "..." : "", to_valid_utf8(text));
  if (at == TokenMasks::kOver || complete(at)) return place + ", which is whole: expected an end id";
  return fmt::format("{}: expected {}one of the bytes {}", place,
                     masks_->automaton().may_end(at) ? "an end id or " : "", shown(masks_->automaton().expected(at)));
}

}  // namespace tandem
