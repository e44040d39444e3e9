#include "draft/corpus.h"

#include <algorithm>
#include <limits>

#include "src/base/error.h"

namespace tandem {
namespace {

// Tokens before a place, compared from the nearest on. Borders are less than any token, and end the comparison.
bool before(std::span<const TokenId> tokens, std::int32_t a, std::int32_t b) {
  for (int depth = 1; depth <= Corpus::kDeepest; ++depth) {
    const TokenId left = tokens[static_cast<std::size_t>(a - depth)],
                  right = tokens[static_cast<std::size_t>(b - depth)];
    if (left != right) return left < right;
    if (left == Corpus::kBorder) break;
  }
  return a < b;
}

// A text as it is compared with places: its last `length` tokens.
class End {
 public:
  End(std::span<const TokenId> text, std::size_t length, std::span<const TokenId> tokens)
      : text_(text.last(length)), tokens_(tokens) {}

  // Tokens before the place that equal the text's, and the first that does not, against the text's.
  struct Comparison {
    int length;
    int sign;  // of the place against the text: 0 when all are equal
  };
  Comparison compare(std::int32_t place) const {
    for (std::size_t depth = 1; depth <= text_.size(); ++depth) {
      const TokenId token = tokens_[static_cast<std::size_t>(place) - depth], wanted = text_[text_.size() - depth];
      if (token != wanted) return {static_cast<int>(depth) - 1, token < wanted ? -1 : 1};
    }
    return {static_cast<int>(text_.size()), 0};
  }

 private:
  std::span<const TokenId> text_, tokens_;
};

}  // namespace

Corpus::Corpus(std::vector<TokenId> tokens) : tokens_(std::move(tokens)) {
  if (tokens_.empty() || tokens_.front() != kBorder || tokens_.back() != kBorder ||
      tokens_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail(ErrorKind::input, "corpus: expected at most 2^31 - 1 tokens between two borders, got {}", tokens_.size());
  }
  for (std::size_t i = 1; i < tokens_.size(); ++i) {
    if (tokens_[i] != kBorder && tokens_[i - 1] != kBorder) order_.push_back(static_cast<std::int32_t>(i));
  }
  order_.shrink_to_fit();
  std::sort(order_.begin(), order_.end(), [this](std::int32_t a, std::int32_t b) { return before(tokens_, a, b); });
}

// Whether the places are in their order is not looked at: where they are not, drafts are worse and the text the same.
Corpus::Corpus(std::vector<TokenId> tokens, std::vector<std::int32_t> order, int vocabulary)
    : tokens_(std::move(tokens)), order_(std::move(order)) {
  const bool bordered = !tokens_.empty() && tokens_.front() == kBorder && tokens_.back() == kBorder;
  const auto known = [vocabulary](TokenId token) { return token >= kBorder && token < vocabulary; };
  const auto inside = [this](std::int32_t place) {
    return place > 0 && static_cast<std::size_t>(place) < tokens_.size() &&
           tokens_[static_cast<std::size_t>(place)] >= 0;
  };
  if (!bordered || !std::ranges::all_of(tokens_, known) || !std::ranges::all_of(order_, inside)) {
    fail(ErrorKind::file, "corpus: expected tokens below {} between borders and places among them, got others",
         vocabulary);
  }
}

Corpus::Match Corpus::longest(std::span<const TokenId> text, std::int64_t* probes) const {
  std::int64_t counted = 0;
  const auto side = [&](const End& end, int limit) {  // the first place with a sign of at least `limit`
    return std::partition_point(order_.begin(), order_.end(), [&](std::int32_t place) {
      ++counted;
      return end.compare(place).sign < limit;
    });
  };
  // The place that the text itself would take has the longest matches on either side.
  const End whole(text, std::min(text.size(), static_cast<std::size_t>(kDeepest)), tokens_);
  const auto here = side(whole, 0);
  int length = 0;
  if (here != order_.end()) length = whole.compare(*here).length;
  if (here != order_.begin()) length = std::max(length, whole.compare(*std::prev(here)).length);
  Match match;
  if (length > 0) {
    const End end(text, static_cast<std::size_t>(length), tokens_);
    const auto first = side(end, 0);
    const auto last = std::max(first, side(end, 1));  // an order that was read may be none
    match = {length, static_cast<std::size_t>(first - order_.begin()), static_cast<std::size_t>(last - order_.begin())};
  }
  if (probes != nullptr) *probes += counted;
  return match;
}

int CorpusWalk::begin(std::span<const TokenId> text) {
  const Corpus::Match match = corpus_.longest(text);
  count_ = std::min(match.places(), kAsked);
  for (std::size_t i = 0; i < count_; ++i) places_[i] = corpus_.order()[match.first + i * match.places() / count_];
  return match.length;
}

std::optional<CorpusWalk::Next> CorpusWalk::next() const {
  std::array<TokenId, kAsked> tokens;
  for (std::size_t i = 0; i < count_; ++i) tokens[i] = corpus_.tokens()[static_cast<std::size_t>(places_[i])];
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(count_);
  std::sort(tokens.begin(), end);
  TokenId best = Corpus::kBorder;
  std::ptrdiff_t votes = 0;
  for (auto run = std::upper_bound(tokens.begin(), end, Corpus::kBorder); run != end;) {
    const auto after = std::upper_bound(run, end, *run);
    if (after - run > votes) {
      votes = after - run;
      best = *run;
    }
    run = after;
  }
  if (votes == 0) return std::nullopt;
  return Next{best, static_cast<double>(votes) / static_cast<double>(count_)};
}

void CorpusWalk::advance() {
  const std::optional<Next> next = this->next();
  if (!next) return;
  const auto others = std::remove_if(
      places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(count_),
      [&](std::int32_t place) { return corpus_.tokens()[static_cast<std::size_t>(place)] != next->token; });
  count_ = static_cast<std::size_t>(others - places_.begin());
  for (std::size_t i = 0; i < count_; ++i) ++places_[i];  // a border stands behind every document
}

}  // namespace tandem
