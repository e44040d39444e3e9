#include "verify/typical.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "verify/walk.h"

namespace tandem {

double typical_threshold(const Distribution& p) {
  double negative_entropy = 0;
  for (const double probability : p.probabilities) negative_entropy += probability * std::log(probability);
  return std::min(kTypicalEpsilon, kTypicalDelta * std::exp(negative_entropy));
}

namespace {

class TypicalVerifier final : public Verifier {
 public:
  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    Verdict verdict;
    const std::uint32_t start = context.position();
    Walk walk(tree, context);
    const Distribution& next = follow_typical(tree, verdict, p_, best_, [&](int node, Distribution& p) {
      walk.go_to(node);
      sampler.distribution(logits, node, context, p);
    });
    verdict.next = draw_next(sampler, next, tree, start, verdict.path().back());
    walk.commit(verdict);
    return verdict;
  }

  std::string_view name() const override { return "typical"; }
  bool lossless() const override { return false; }

 private:
  Distribution p_, best_;
};

}  // namespace

std::unique_ptr<Verifier> make_typical_verifier() { return std::make_unique<TypicalVerifier>(); }

}  // namespace tandem
