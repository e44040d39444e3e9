// Drafts what followed the last time: the text's longest suffix that occurred before is continued as it was then.
#pragma once
#include <optional>
#include <vector>

#include "draft/drafter.h"
#include "draft/suffix_automaton.h"

namespace tandem {

// A chain of deterministic children from the prompt and the output of this sequence alone. Throws Error(config) unless
// 1 <= min_match <= max_match.
class NgramDrafter final : public Drafter {
 public:
  // `min_match`: shortest match to draft from; `max_match`: length from which a longer match counts no more.
  // `tokens`: length of text for which memory is taken at once; a longer text grows it.
  NgramDrafter(int min_match, int max_match, int tokens);

  const TokenTree& propose(Context& context, LengthPolicy& policy) override;
  void observe(const Observation&, const Context&) override {}
  void reset() override;
  std::string_view name() const override { return "ngram"; }

  // The parts of propose(), for a drafter that fills a tree from more than one source. read() takes in the committed
  // tokens. extend() hangs the continuation of the longest repeat below `node`, whose path `tree` holds, and returns
  // the last node, `node` itself when there is none. first() is the question that extend() would begin with, if any.
  void read(std::span<const TokenId> committed);
  int extend(TokenTree& tree, int node, LengthPolicy& policy);
  std::optional<DraftQuestion> first(const TokenTree& tree, int node);

  const SuffixAutomaton& automaton() const { return automaton_; }

 private:
  SuffixAutomaton::Match match_after(const TokenTree& tree, int node);
  DraftQuestion question(const TokenTree& tree, int node, int length) const;

  int min_match_, max_match_;
  SuffixAutomaton automaton_;
  std::vector<TokenId> text_;  // what the automaton holds
  std::vector<TokenId> path_;  // of the tree, below the pending token
  TokenTree tree_;
};

}  // namespace tandem
