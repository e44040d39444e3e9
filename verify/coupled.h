// Shared Gumbel noise (Daliri et al., arXiv 2408.07978; algorithms.md section 8.2): the target draws its own token at
// each visited position, with the noise that plain decoding uses there, and a draft stands where it is that token. The
// text is a function of target and seed alone, whatever was drafted.
#pragma once
#include <cstdint>
#include <memory>

#include "src/base/token_tree.h"
#include "verify/verifier.h"

namespace tandem {

// Follows the target's own tokens through a proposal while they are in it. Fills the whole verdict. `token_at(node)`:
// the target's token after that node, asked once a visited node, in path order.
template <typename TokenAt>
void follow_tokens(const TokenTree& tree, Verdict& verdict, TokenAt&& token_at) {
  int node = 0;
  while (node >= 0) {
    verdict.extend(node);
    verdict.next = token_at(node);
    int child = tree.next_child(node, node);
    for (; child >= 0; child = tree.next_child(node, child)) {
      verdict.tested |= std::uint64_t{1} << child;
      if (tree.token(child) == verdict.next) break;
    }
    node = child;
  }
}

std::unique_ptr<Verifier> make_coupled_verifier();

}  // namespace tandem
