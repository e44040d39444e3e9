#include "verify/block.h"

#include <string_view>

#include "verify/walk.h"

namespace tandem {
namespace {

class BlockVerifier final : public Verifier {
 public:
  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    Verdict verdict;
    const std::uint32_t start = context.position();
    Walk walk(tree, context);
    const auto target_at = [&](int node) -> const Distribution& {
      walk.go_to(node);
      Distribution& target = targets_[tree.depth(node)];
      sampler.distribution(logits, node, context, target);
      return target;
    };
    const auto accepts = [&](int node, double probability) {
      return sampler.uniform(start, node, DrawPurpose::accept) < probability;
    };
    const Distribution& next = follow_deepest(tree, states_, verdict, target_at, accepts);
    verdict.next = draw_next(sampler, next, tree, start, verdict.path().back());
    walk.commit(verdict);
    return verdict;
  }

  std::string_view name() const override { return "block"; }
  bool lossless() const override { return true; }

 private:
  // By depth: a node is decided after everything below it, so all of its path is kept.
  std::array<Distribution, kMaxTreeNodes> targets_;
  std::array<NodeState, kMaxTreeNodes> states_;
};

}  // namespace

std::unique_ptr<Verifier> make_block_verifier() { return std::make_unique<BlockVerifier>(); }

}  // namespace tandem
