// How much to draft: asked before each draft step and before each row, so the stop test lives here and not in drafters.
#pragma once
#include <string_view>

#include "src/base/token_tree.h"

namespace tandem {

// What a step may use at most, set by the engine: room left in the context and tokens still wanted.
struct DraftBudget {
  int max_depth = 0;  // longest path below the pending token
  int max_nodes = 1;  // nodes of the tree, node 0 included
  int context = 0;    // committed tokens, the pending one included
};

// For sampled children the answer may depend on q and the prefix, never on what was drawn: dropping a drawn token
// biases the output (algorithms.md section 1). So `next_confidence` of a sampled child is the largest probability of q.
struct DraftQuestion {
  int depth;               // depth the new node would have, from 1
  int nodes;               // nodes in the tree so far, node 0 included
  double path_confidence;  // product of confidences from the root to the parent
  double next_confidence;  // in [0, 1]: the deterministic candidate's own, or max q (at temperature 0 before that);
                           // negative when not known yet
  DraftSource source;
  int parent = -1;       // node that the new one would hang from; -1: the newest
  int feed = 1;          // a draft step: tokens that its pass runs, those included that the draft has to catch up on
  int siblings = 0;      // children that the parent has already
  bool partial = false;  // a draft step that reads only a part of a long unread text
};

class LengthPolicy {
 public:
  virtual ~LengthPolicy() = default;
  virtual void begin_step(const DraftBudget& budget) = 0;
  // May the drafter spend one more draft forward that yields children at `question.depth`?
  virtual bool allow_draft_step(const DraftQuestion& question) = 0;
  // May one more row (node) go into the tree?
  virtual bool allow_row(const DraftQuestion& question) = 0;
  // May a draft read the first `reads` tokens of a prompt, before `step` and all the rest, to see how well it foretells
  // them? Without costs to go by: no, what is asked for is drafted.
  virtual bool allow_trial(const DraftQuestion& /*step*/, int /*reads*/) { return false; }
  // In a trial the source was this sure of its best token, which was or was not the text's.
  virtual void observe_trial(DraftSource /*source*/, double /*confidence*/, bool /*came*/) {}
  // A drafter with two sources asks: is the chain that begins with the known candidate `known` worth more than one by
  // draft steps, of which `step` would be the first? Nothing is spent by asking.
  // Without costs to go by: if the candidate is reliable.
  virtual bool prefers(const DraftQuestion& known, const DraftQuestion& /*step*/) {
    return known.next_confidence >= kReliable;
  }
  virtual void observe(const TokenTree& tree, const Verdict& verdict) = 0;
  // What the last proposal took, and the target's pass over its `rows` rows.
  virtual void observe_seconds(double /*propose*/, double /*pass*/, int /*rows*/) {}
  // A new prompt follows: forgets what was learned from the text, so that each answer is as in a fresh process.
  virtual void reset() {}
  virtual std::string_view name() const = 0;

 private:
  // A repeat of five tokens by Laplace's rule, as in SAM decoding (arXiv 2411.10666).
  static constexpr double kReliable = 6.0 / 7;
};

// What a fixed length makes: a chain, or a tree of the likeliest nodes.
enum class DraftShape { chain, tree };

// Always the same length: up to `length` deep and `max_nodes` nodes within the budget; a path ends before a candidate
// whose known confidence is below `min_probability` (0 = off).
class FixedLength final : public LengthPolicy {
 public:
  FixedLength(int length, int max_nodes, double min_probability, DraftShape shape = DraftShape::chain)
      : length_(length), max_nodes_(max_nodes), min_probability_(min_probability), shape_(shape) {}
  void begin_step(const DraftBudget& budget) override { budget_ = budget; }
  bool allow_draft_step(const DraftQuestion& question) override { return fits(question); }
  bool allow_row(const DraftQuestion& question) override {
    return fits(question) && (question.next_confidence < 0 || question.next_confidence >= min_probability_);
  }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "fixed"; }

 private:
  bool fits(const DraftQuestion& question) const {
    return question.depth <= length_ && question.depth <= budget_.max_depth && question.nodes < max_nodes_ &&
           question.nodes < budget_.max_nodes && (shape_ == DraftShape::tree || question.siblings == 0);
  }
  int length_, max_nodes_;
  double min_probability_;
  DraftShape shape_;
  DraftBudget budget_;
};

}  // namespace tandem
