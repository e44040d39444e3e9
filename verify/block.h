// Block verification on chains (Sun et al., arXiv 2403.10444) and traversal verification on trees (arXiv 2505.12398,
// algorithms.md section 3.5): the deepest nodes are decided first, so a path may stand although a token of it would
// have been rejected alone. Never accepts less than rejection, on average.
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "src/base/distribution.h"
#include "src/base/token_tree.h"
#include "verify/node_state.h"
#include "verify/verifier.h"

namespace tandem {

// Visits the nodes in post-order, each after all its children were rejected, and ends at the first that is accepted;
// the root always is. A node's weight is w_parent P(x) / Q(x), at most 1; nodes without weight are not visited. Fills
// path and tested nodes (visited children of the path) of the verdict and returns the distribution of the token that
// follows (valid as the residual() of a state). `states`: one for each depth, from 0. `target_at(node)` is called at
// most once a node, for a leaf only when it is accepted; `accepts(node, probability)` decides one node.
template <typename States, typename TargetAt, typename Accepts>
const Distribution& follow_deepest(const TokenTree& tree, States& states, Verdict& verdict, TargetAt&& target_at,
                                   Accepts&& accepts) {
  struct Visit {
    int node;
    int child;  // the one tried last; the node itself before the first
    double weight;
  };
  std::array<Visit, kMaxTreeNodes> path;
  int depth = 0;
  const auto has_children = [&](int node) { return tree.next_child(node, node) >= 0; };
  const auto begin = [&] {
    const Visit& visit = path[depth];
    states[depth].begin(target_at(visit.node), tree.proposal(visit.node), visit.weight);
  };
  const auto enter = [&](int node, double weight) {
    path[depth] = {node, node, weight};
    if (has_children(node)) begin();
  };

  std::uint64_t visited = 0;
  enter(0, 1);
  while (true) {
    Visit& visit = path[depth];
    auto& state = states[depth];
    const int child = tree.next_child(visit.node, visit.child);
    if (child >= 0) {
      visit.child = child;
      visited |= std::uint64_t{1} << child;
      const double weight = state.accept_probability(tree.token(child), tree.kind(child));
      if (weight > 0) {
        ++depth;
        enter(child, weight);
      } else {
        state.reject(tree.token(child), tree.kind(child));
      }
      continue;
    }
    const bool leaf = visit.child == visit.node;
    if (depth == 0 || accepts(visit.node, leaf ? visit.weight : state.weight())) {
      if (leaf) begin();
      break;
    }
    --depth;
    states[depth].reject(tree.token(visit.node), tree.kind(visit.node));
  }

  for (int i = 0; i <= depth; ++i) {
    const int node = path[i].node;
    verdict.extend(node);
    for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, child)) {
      verdict.tested |= visited & std::uint64_t{1} << child;
    }
  }
  return states[depth].residual();
}

std::unique_ptr<Verifier> make_block_verifier();

}  // namespace tandem
