// Typical acceptance (Cai et al., Medusa, arXiv 2401.10774, section 3.3.1): keeps drafts that the target finds
// plausible. Lossy: the text does not follow the target's distribution.
#pragma once
#include <memory>
#include <utility>

#include "src/base/distribution.h"
#include "src/base/token_tree.h"
#include "verify/verifier.h"

namespace tandem {

// The published settings: a hard floor of 0.09, and 0.3 (its square root) of the entropy's own measure.
inline constexpr double kTypicalEpsilon = 0.09;
inline constexpr double kTypicalDelta = 0.3;

// min(epsilon, delta exp(-H(p))): a draft stands if p gives it more than this. Never as much as the largest
// probability.
double typical_threshold(const Distribution& p);

// Ends at the first of the deepest nodes whose path stands throughout. Fills path and tested nodes (children of nodes
// that stand) of the verdict and returns the distribution of the token that follows. `target_at(node)` fills the
// distribution after a node that stands, in the order of the nodes; `p` and `best` are scratch.
template <typename TargetAt>
const Distribution& follow_typical(const TokenTree& tree, Verdict& verdict, Distribution& p, Distribution& best,
                                   TargetAt&& target_at) {
  std::uint64_t stands = 1;
  int last = -1;
  for (int node = 0; node < tree.size(); ++node) {
    if ((stands >> node & 1) == 0) continue;
    target_at(node, p);
    const double threshold = typical_threshold(p);
    for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, child)) {
      verdict.tested |= std::uint64_t{1} << child;
      if (p[tree.token(child)] > threshold) stands |= std::uint64_t{1} << child;
    }
    if (last >= 0 && tree.depth(node) <= tree.depth(last)) continue;
    last = node;
    std::swap(p, best);
  }
  for (int node = 0; node <= last; ++node) {
    if (tree.ancestors(last) >> node & 1) verdict.extend(node);
  }
  return best;
}

std::unique_ptr<Verifier> make_typical_verifier();

}  // namespace tandem
