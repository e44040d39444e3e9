#include "verify/rejection.h"

#include <string_view>

#include "verify/walk.h"

namespace tandem {
namespace {

class RejectionVerifier final : public Verifier {
 public:
  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    Verdict verdict;
    const std::uint32_t start = context.position();
    Walk walk(tree, context);
    const auto target_at = [&](int node) -> const Distribution& {
      walk.go_to(node);
      sampler.distribution(logits, node, context, target_);
      return target_;
    };
    const auto accepts = [&](int child, double probability) {
      return sampler.uniform(start, child, DrawPurpose::accept) < probability;
    };
    const Distribution& next = follow_proposal(tree, state_, verdict, target_at, accepts);
    verdict.next = draw_next(sampler, next, tree, start, verdict.path().back());
    walk.commit(verdict);
    return verdict;
  }

  std::string_view name() const override { return "rejection"; }
  bool lossless() const override { return true; }

 private:
  Distribution target_;
  NodeState state_;
};

}  // namespace

std::unique_ptr<Verifier> make_rejection_verifier() { return std::make_unique<RejectionVerifier>(); }

}  // namespace tandem
