// What is left of target and proposal at one node while its children are tested: the arithmetic that `rejection` and
// `block` share, free of randomness and of models. The wired rules draw with it, tests enumerate it.
#pragma once
#include <vector>

#include "src/base/distribution.h"
#include "src/base/token_tree.h"
#include "src/base/types.h"

namespace tandem {

// P and Q of a node while its children are tested in order, and the node's weight w: how probable it is, given the
// draws above it, that the walk ends at this node or below. With w = 1 this is recursive rejection without replacement
// (algorithms.md section 3.1; one sampled child is Leviathan et al. 2022, Chen et al. 2023); the weights are those of
// traversal verification (arXiv 2505.12398), which is block verification (arXiv 2403.10444) on a chain. A deterministic
// child counts as drawn from a one-hot proposal. Reused from node to node: allocates nothing once warm, computes at
// most one residual a rejected child, each linear in the supports.
class NodeState {
 public:
  NodeState();

  // Starts at a node. `target`: the distribution of its next token. `proposal`: what its sampled children were drawn
  // from before its deterministic ones were taken out; null without sampled children. Both must outlive the node.
  // `weight`: in [0, 1]; 1 stays 1.
  void begin(const Distribution& target, const Distribution* proposal, double weight = 1);

  // In [0, 1]: w P(x) for a deterministic child, min(1, w P(x) / Q(x)) for a sampled one, 0 for a sampled child outside
  // Q (a repeated sibling). With w = 1 the probability of accepting the child; in a traversal the child's own weight.
  double accept_probability(TokenId child, ChildKind kind);

  // The child was rejected. With S the mass of max(w P - Q, 0): P becomes max(w P - Q, 0) / S, w becomes S / (S + 1 -
  // w) (1 where that is 0 / 0), and Q loses the child. For a deterministic child Q is one-hot: P loses the child. Where
  // rounding leaves no mass, P stays. A sampled child outside Q changes nothing: it was never a draw.
  void reject(TokenId child, ChildKind kind);

  // P: the distribution of the token after this node when no child is accepted. Valid until the next call of a
  // non-const member.
  const Distribution& residual() const { return *p_; }
  double weight() const { return weight_; }

 private:
  const Distribution& proposal_now();
  void reject_sampled();
  void reject_deterministic(TokenId child);
  void set_weight(double residual_mass);

  const Distribution* p_ = nullptr;
  const Distribution* q_ = nullptr;
  double weight_ = 1;
  Distribution own_p_, own_q_;    // p_ and q_ point here once they differ from what begin() was given
  std::vector<TokenId> removed_;  // children that q_ has yet to lose: most nodes end before anyone asks
};

// max(scale * p - q, 0) scaled to sum 1, in place; p stays as it is when nothing is left. Returns the sum before
// scaling. Linear, or |p| log |q| when p is much the smaller.
double subtract_and_normalise(Distribution& p, const Distribution& q, double scale = 1);

}  // namespace tandem
