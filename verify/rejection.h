// Rejection sampling over a token tree (Leviathan et al. 2022; among siblings recursively, without replacement).
#pragma once
#include <cstdint>
#include <memory>

#include "src/base/distribution.h"
#include "src/base/token_tree.h"
#include "verify/node_state.h"
#include "verify/verifier.h"

namespace tandem {

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
