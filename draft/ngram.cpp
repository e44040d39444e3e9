#include "draft/ngram.h"

#include <algorithm>

#include "src/base/error.h"

namespace tandem {
namespace {

// Laplace's rule of succession: after `length` tokens that all came as before, the chance that the next one does.
double confidence_after(int length) { return (length + 1.0) / (length + 2.0); }

}  // namespace

NgramDrafter::NgramDrafter(int min_match, int max_match, int tokens)
    : min_match_(min_match), max_match_(max_match), automaton_(tokens) {
  if (min_match < 1 || max_match < min_match) {
    fail(ErrorKind::config, "draft.ngram: expected 1 <= min_match <= max_match, got {} and {}", min_match, max_match);
  }
  text_.reserve(static_cast<std::size_t>(tokens));
}

void NgramDrafter::reset() {
  automaton_.clear();
  text_.clear();
}

// An automaton cannot forget its newest tokens, so a context that is no extension of the text (tokens were cut, another
// prompt began) is read anew.
void NgramDrafter::follow(std::span<const TokenId> tokens) {
  const bool extends = tokens.size() >= text_.size() && std::equal(text_.begin(), text_.end(), tokens.begin());
  if (!extends) reset();
  for (const TokenId token : tokens.subspan(text_.size())) {
    automaton_.append(token);
    text_.push_back(token);
  }
}

const TokenTree& NgramDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  follow(context.tokens());
  const SuffixAutomaton::Match match = automaton_.match();
  if (match.length < min_match_) return tree_;

  double path_confidence = 1;
  for (int node = 0; !tree_.full();) {
    const int depth = tree_.depth(node) + 1;
    const double confidence = confidence_after(std::min(match.length, max_match_) + depth - 1);
    if (!policy.allow_row({depth, tree_.size(), path_confidence, confidence, DraftSource::ngram})) break;
    // Past the end of the text the continuation is the proposal itself: the text repeats with the match's period.
    const int from = match.end + depth;
    const int beyond = from - static_cast<int>(text_.size());
    const TokenId token = beyond < 0 ? text_[from] : tree_.token(beyond + 1);
    node = tree_.add(node, token, ChildKind::deterministic, DraftSource::ngram, static_cast<float>(confidence));
    path_confidence *= confidence;
  }
  return tree_;
}

}  // namespace tandem
