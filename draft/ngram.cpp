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
  path_.reserve(kMaxTreeNodes);
}

void NgramDrafter::reset() {
  automaton_.clear();
  text_.clear();
}

// An automaton cannot forget its newest tokens, so a context that is no extension of the text (tokens were cut, another
// prompt began) is read anew.
void NgramDrafter::read(std::span<const TokenId> tokens) {
  const bool extends = tokens.size() >= text_.size() && std::equal(text_.begin(), text_.end(), tokens.begin());
  if (!extends) reset();
  for (const TokenId token : tokens.subspan(text_.size())) {
    automaton_.append(token);
    text_.push_back(token);
  }
}

const TokenTree& NgramDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  read(context.tokens());
  extend(tree_, 0, policy);
  return tree_;
}

// Leaves the tokens of the path in path_.
SuffixAutomaton::Match NgramDrafter::match_after(const TokenTree& tree, int node) {
  path_.clear();
  SuffixAutomaton::Match match = automaton_.match();
  for (int i = 1; i <= node; ++i) {
    if ((tree.ancestors(node) >> i & 1) == 0) continue;
    path_.push_back(tree.token(i));
    match = automaton_.follow(match, tree.token(i));
  }
  return match;
}

DraftQuestion NgramDrafter::question(const TokenTree& tree, int node, int length) const {
  double path_confidence = 1;
  for (int i = node; i > 0; i = tree.parent(i)) path_confidence *= tree.confidence(i);
  return {tree.depth(node) + 1, tree.size(), path_confidence, confidence_after(length), DraftSource::ngram, node};
}

std::optional<DraftQuestion> NgramDrafter::first(const TokenTree& tree, int node) {
  const int length = match_after(tree, node).length;
  if (length < min_match_ || tree.full()) return std::nullopt;
  return question(tree, node, std::min(length, max_match_));
}

int NgramDrafter::extend(TokenTree& tree, int node, LengthPolicy& policy) {
  const SuffixAutomaton::Match match = match_after(tree, node);
  if (match.length < min_match_) return node;
  for (int count = 1; !tree.full(); ++count) {
    const DraftQuestion next = question(tree, node, std::min(match.length, max_match_) + count - 1);
    if (!policy.allow_row(next)) break;
    // Past the end of the text the continuation is the proposal itself: the text repeats with the match's period.
    const int from = match.end + count;
    const int beyond = from - static_cast<int>(text_.size());
    const TokenId token = beyond < 0 ? text_[from] : path_[beyond];
    node =
        tree.add(node, token, ChildKind::deterministic, DraftSource::ngram, static_cast<float>(next.next_confidence));
    path_.push_back(token);
  }
  return node;
}

}  // namespace tandem
