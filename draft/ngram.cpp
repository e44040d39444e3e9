#include "draft/ngram.h"

#include <algorithm>
#include <utility>

#include "src/base/error.h"

namespace tandem {
namespace {

// Laplace's rule of succession: after `length` tokens that all came as before, the chance that the next one does.
double confidence_after(int length) { return (length + 1.0) / (length + 2.0); }

}  // namespace

NgramDrafter::NgramDrafter(int min_match, int max_match, int tokens, std::shared_ptr<const Corpus> corpus,
                           std::shared_ptr<Constraint> constraint)
    : min_match_(min_match),
      max_match_(max_match),
      admission_(std::move(constraint)),
      automaton_(tokens),
      corpus_(std::move(corpus)) {
  if (min_match < 1 || max_match < min_match) {
    fail(ErrorKind::config, "draft.ngram: expected 1 <= min_match <= max_match, got {} and {}", min_match, max_match);
  }
  text_.reserve(static_cast<std::size_t>(tokens));
  path_.reserve(kMaxTreeNodes);
  if (corpus_) walk_.emplace(*corpus_);
}

void NgramDrafter::reset() {
  automaton_.clear();
  text_.clear();
}

// An automaton cannot forget its newest tokens, so a context that is no extension of the text (tokens were cut, another
// prompt began) is read anew.
void NgramDrafter::take_in(std::span<const TokenId> tokens) {
  const bool extends = tokens.size() >= text_.size() && std::equal(text_.begin(), text_.end(), tokens.begin());
  if (!extends) reset();
  for (const TokenId token : tokens.subspan(text_.size())) {
    automaton_.append(token);
    text_.push_back(token);
  }
}

void NgramDrafter::read(const Context& context) {
  admission_.begin(context);
  take_in(context.tokens());
}

void NgramDrafter::grow(TokenTree& tree, Context& context, LengthPolicy& policy) {
  read(context);
  extend(tree, tree.first_leaf(), policy);
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

// Begins the walk behind the corpus's match of the text and the path.
int NgramDrafter::corpus_match() {
  if (!walk_) return 0;
  std::array<TokenId, Corpus::kDeepest> end;
  const std::size_t drafted = std::min(path_.size(), end.size());
  const std::size_t committed = std::min(text_.size(), end.size() - drafted);
  std::copy(path_.end() - static_cast<std::ptrdiff_t>(drafted), path_.end(),
            end.end() - static_cast<std::ptrdiff_t>(drafted));
  std::copy(text_.end() - static_cast<std::ptrdiff_t>(committed), text_.end(),
            end.end() - static_cast<std::ptrdiff_t>(drafted + committed));
  return walk_->begin(std::span(end).last(drafted + committed));
}

// The longer match, and of two as long the text's own; a longer one that documents continue in many ways gives way.
DraftSource NgramDrafter::choose(const TokenTree& tree, int node) {
  const SuffixAutomaton::Match own = match_after(tree, node);
  const int other = corpus_match();
  bool from_corpus = other > own.length;
  if (from_corpus && own.length >= min_match_) {
    const std::optional<CorpusWalk::Next> next = walk_->next();
    from_corpus = next && next->share * confidence_after(std::min(other, max_match_)) >
                              confidence_after(std::min(own.length, max_match_));
  }
  length_ = std::min(from_corpus ? other : own.length, max_match_);
  place_ = own.end + 1;
  source_ = length_ < min_match_ ? DraftSource::none : from_corpus ? DraftSource::corpus : DraftSource::ngram;
  return source_;
}

std::optional<NgramDrafter::Candidate> NgramDrafter::candidate() const {
  if (source_ == DraftSource::none) return std::nullopt;
  if (source_ == DraftSource::corpus) {
    const std::optional<CorpusWalk::Next> next = walk_->next();
    if (!next) return std::nullopt;
    return Candidate{next->token, next->share * confidence_after(length_)};
  }
  // Past the end of the text the continuation is the proposal itself: the text repeats with the match's period.
  const auto place = static_cast<std::size_t>(place_);
  return Candidate{place < text_.size() ? text_[place] : path_[place - text_.size()], confidence_after(length_)};
}

DraftQuestion NgramDrafter::question(const TokenTree& tree, int node, const Candidate& next) const {
  return {tree.depth(node) + 1, tree.size(), tree.path_confidence(node), next.confidence, source_, node};
}

std::optional<DraftQuestion> NgramDrafter::first(const TokenTree& tree, int node) {
  if (tree.full() || choose(tree, node) == DraftSource::none) return std::nullopt;
  const std::optional<Candidate> next = candidate();
  if (!next || !admission_.admits(tree, node, next->token)) return std::nullopt;
  return question(tree, node, *next);
}

int NgramDrafter::extend(TokenTree& tree, int node, LengthPolicy& policy) {
  choose(tree, node);
  while (!tree.full()) {
    const std::optional<Candidate> next = candidate();
    if (!next || !admission_.admits(tree, node, next->token)) break;
    if (!policy.allow_row(question(tree, node, *next))) break;
    node = tree.add(node, next->token, ChildKind::deterministic, source_, static_cast<float>(next->confidence));
    path_.push_back(next->token);
    ++length_;
    if (source_ == DraftSource::corpus) walk_->advance();
    ++place_;
  }
  return node;
}

}  // namespace tandem
