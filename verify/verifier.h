// Decides which proposed tokens stand. A rule is one file; the registry lists them.
#pragma once
#include <memory>
#include <string_view>

#include "src/base/logits.h"
#include "src/base/token_tree.h"
#include "src/sample/context.h"
#include "src/sample/sampler.h"

namespace tandem {

class Verifier {
 public:
  virtual ~Verifier() = default;

  // `logits` has one row a node. On entry the context ends with the pending token (node 0); on return it also holds the
  // accepted path and the verdict's next token: exactly the committed tokens. A tree of one node (plain decoding) draws
  // with the sampler's position-keyed noise under every rule, so plain text for a seed is one text.
  virtual Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) = 0;

  virtual std::string_view name() const = 0;
  virtual bool lossless() const = 0;
  // Whether every token is the one that plain decoding draws at its position, so that picks of the rows are all it
  // needs.
  virtual bool follows_picks() const { return false; }
  // How drafters must draw their sampled children for this rule.
  virtual DraftDraw draft_draw() const { return DraftDraw::independent; }
};

// `rule`: rejection, block, coupled or typical. Throws Error(config) for one that does not exist, naming those that do.
std::unique_ptr<Verifier> make_verifier(std::string_view rule);

}  // namespace tandem
