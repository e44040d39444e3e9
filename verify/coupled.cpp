#include "verify/coupled.h"

#include <string_view>

#include "src/base/distribution.h"
#include "verify/walk.h"

namespace tandem {
namespace {

class CoupledVerifier final : public Verifier {
 public:
  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    Verdict verdict;
    Walk walk(tree, context);
    follow_tokens(tree, verdict, [&](int node) {
      walk.go_to(node);
      sampler.distribution(logits, node, context, target_);
      return sampler.draw_with_noise(target_, context.position());
    });
    walk.commit(verdict);
    return verdict;
  }

  std::string_view name() const override { return "coupled"; }
  bool lossless() const override { return true; }
  bool follows_picks() const override { return true; }
  DraftDraw draft_draw() const override { return DraftDraw::shared_noise; }

 private:
  Distribution target_;
};

}  // namespace

std::unique_ptr<Verifier> make_coupled_verifier() { return std::make_unique<CoupledVerifier>(); }

}  // namespace tandem
