// The arithmetic of rejection sampling over a token tree, free of randomness and of models: the wired rule draws with
// it, tests enumerate it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/distribution.h"
#include "src/base/token_tree.h"
#include "src/base/types.h"
#include "verify/verifier.h"

namespace tandem {

// What is left of target and proposal at one node while its children are tested in order (recursive rejection without
// replacement, algorithms.md section 3.1; one sampled child is Leviathan et al. 2022, Chen et al. 2023). A
// deterministic child counts as drawn from a one-hot proposal. Reused from node to node: allocates nothing once warm,
// computes at most one residual a rejected child, each linear in the supports.
class NodeState {
 public:
  NodeState();

  // Starts at a node. `target`: the distribution of its next token. `proposal`: what its sampled children were drawn
  // from before its deterministic ones were taken out; null without sampled children. Both must outlive the node.
  void begin(const Distribution& target, const Distribution* proposal);

  // Probability in [0, 1] of accepting the next child: P(x) for a deterministic child, min(1, P(x) / Q(x)) for a
  // sampled one; 0 for a sampled child outside Q (a repeated sibling).
  double accept_probability(TokenId child, ChildKind kind);

  // The child was rejected. Sampled: P becomes max(P - Q, 0) scaled to sum 1. Deterministic: P loses the child. Where
  // rounding leaves no mass, P stays. Q loses the child. A sampled child outside Q changes nothing: it was never a
  // draw.
  void reject(TokenId child, ChildKind kind);

  // P: the distribution of the token after this node when no child is accepted. Valid until the next call of a
  // non-const member.
  const Distribution& residual() const { return *p_; }

 private:
  const Distribution& proposal_now();

  const Distribution* p_ = nullptr;
  const Distribution* q_ = nullptr;
  Distribution own_p_, own_q_;    // p_ and q_ point here once they differ from what begin() was given
  std::vector<TokenId> removed_;  // children that q_ has yet to lose: most nodes end before anyone asks
};

// max(p - q, 0) scaled to sum 1, in place; p stays as it is when nothing is left. Linear, or |p| log |q| when p is much
// the smaller.
void subtract_and_normalise(Distribution& p, const Distribution& q);

// Follows the accepted path of a proposal: at each node the children in order until one is accepted. Fills path and
// tested nodes of the verdict and returns the distribution of the token that follows (valid as State::residual()).
// `target_at(node)` is called once a visited node, in path order; `accepts(node, probability)` decides one child.
template <typename State, typename TargetAt, typename Accepts>
const Distribution& follow_proposal(const TokenTree& tree, State& state, Verdict& verdict, TargetAt&& target_at,
                                    Accepts&& accepts) {
  int node = 0;
  while (true) {
    verdict.extend(node);
    state.begin(target_at(node), tree.proposal(node));
    int accepted = -1;
    for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, child)) {
      verdict.tested |= std::uint64_t{1} << child;
      if (accepts(child, state.accept_probability(tree.token(child), tree.kind(child)))) {
        accepted = child;
        break;
      }
      state.reject(tree.token(child), tree.kind(child));
    }
    if (accepted < 0) return state.residual();
    node = accepted;
  }
}

std::unique_ptr<Verifier> make_rejection_verifier();

}  // namespace tandem
