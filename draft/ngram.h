// Drafts what followed the last time: the text's longest suffix that occurred before is continued as it was then.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "draft/admission.h"
#include "draft/corpus.h"
#include "draft/drafter.h"
#include "draft/suffix_automaton.h"

namespace tandem {

// A chain of deterministic children from the prompt and the output of this sequence, or from a corpus where that holds
// the longer match. Throws Error(config) unless 1 <= min_match <= max_match.
class NgramDrafter final : public GrowingDrafter {
 public:
  // `min_match`: shortest match to draft from; `max_match`: length from which a longer match counts no more.
  // `tokens`: length of text for which memory is taken at once (automaton().bytes()); a longer text grows it. `corpus`
  // may be null; only read. `constraint`: of the answer; null: none.
  NgramDrafter(int min_match, int max_match, int tokens, std::shared_ptr<const Corpus> corpus = nullptr,
               std::shared_ptr<Constraint> constraint = nullptr);

  // Below the path of first children.
  void grow(TokenTree& tree, Context& context, LengthPolicy& policy) override;
  void observe(const Observation&, const Context&) override {}
  void reset() override;
  std::string_view name() const override { return "ngram"; }

  // The parts of grow(), for a drafter that fills a tree from more than one source. read() takes in the committed
  // tokens and comes first. extend() hangs the continuation of the longest match below `node`, whose path `tree` holds,
  // and returns the last node, `node` itself when there is none. first() is the question that extend() would begin
  // with, if any.
  void read(const Context& context);
  int extend(TokenTree& tree, int node, LengthPolicy& policy);
  std::optional<DraftQuestion> first(const TokenTree& tree, int node);

  const SuffixAutomaton& automaton() const { return automaton_; }

 private:
  // What follows the match of the text and the path: a token at a time, from the source that was chosen.
  struct Candidate {
    TokenId token;
    double confidence;
  };
  DraftSource choose(const TokenTree& tree, int node);
  std::optional<Candidate> candidate() const;
  DraftQuestion question(const TokenTree& tree, int node, const Candidate& next) const;

  SuffixAutomaton::Match match_after(const TokenTree& tree, int node);
  int corpus_match();

  void take_in(std::span<const TokenId> tokens);

  int min_match_, max_match_;
  Admission admission_;
  SuffixAutomaton automaton_;
  std::shared_ptr<const Corpus> corpus_;
  std::optional<CorpusWalk> walk_;  // with a corpus
  std::vector<TokenId> text_;       // what the automaton holds
  std::vector<TokenId> path_;       // of the tree, below the pending token

  // of the match that is continued
  DraftSource source_ = DraftSource::none;  // none: no match that is long enough
  int length_ = 0;                          // max_match_ at most, with what was drafted from it
  int place_ = 0;                           // of the next token in the text
};

}  // namespace tandem
