// Rules for chains that each hold one mistake, for tests that must find it.
#pragma once
#include <algorithm>
#include <string_view>

#include "verify/verifier.h"

namespace tandem::test {

enum class Mistake {
  accepts_all,
  corrects_from_p,        // after a rejection draws from p, not from what is left of it
  corrects_from_q,        // after a rejection draws from the draft's distribution
  drops_drawn_tokens,     // leaves out a drawn token that the draft gave little, as if it had not been drawn
  drops_refused_tokens,   // leaves out a drawn token that the target cannot draw, as if it had not been drawn
  emits_the_second_best,  // where the plain draw would be kept
  forgets_the_path        // penalties see the committed tokens only
};

// `rejection` but for the mistake; nodes have one child at most.
class MutantRule final : public Verifier {
 public:
  explicit MutantRule(Mistake mistake) : mistake_(mistake) {}

  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    Verdict verdict;
    const std::uint32_t start = context.position();
    const int committed = context.size();
    bool from_p = true;
    int node = 0;
    for (;; node = tree.next_child(node, node)) {
      verdict.extend(node);
      sampler.distribution(logits.row(node), context, p_);
      const int child = tree.next_child(node, node);
      if (child < 0) break;
      const Distribution* q = tree.kind(child) == ChildKind::sampled ? tree.proposal(node) : nullptr;
      const TokenId token = tree.token(child);
      if (mistake_ == Mistake::drops_drawn_tokens && q != nullptr && (*q)[token] < 0.5) break;
      if (mistake_ == Mistake::drops_refused_tokens && p_[token] == 0) break;
      verdict.tested |= std::uint64_t{1} << child;
      const double ratio = p_[token] / (q != nullptr ? (*q)[token] : 1);
      const bool accepted =
          mistake_ == Mistake::accepts_all || sampler.uniform(start, child, DrawPurpose::accept) < ratio;
      if (!accepted) {
        correct(token, q);
        from_p = false;
        break;
      }
      if (mistake_ != Mistake::forgets_the_path) context.push(token);
    }
    if (mistake_ == Mistake::emits_the_second_best && from_p && tree.size() > 1) p_ = second_best(logits.row(node));
    verdict.next =
        tree.size() == 1 ? sampler.draw_with_noise(p_, start) : sampler.draw(p_, start, node, DrawPurpose::correction);
    context.pop(context.size() - committed);
    for (const int kept : verdict.path().subspan(1)) context.push(tree.token(kept));
    context.push(verdict.next);
    return verdict;
  }
  std::string_view name() const override { return "mutant"; }
  bool lossless() const override { return false; }

 private:
  void correct(TokenId token, const Distribution* q) {
    if (mistake_ == Mistake::corrects_from_p) return;
    if (mistake_ == Mistake::corrects_from_q && q != nullptr) {
      p_ = *q;
      return;
    }
    Distribution rest;
    for (std::size_t i = 0; i < p_.size(); ++i) {
      const double proposed = q != nullptr ? (*q)[p_.tokens[i]] : p_.tokens[i] == token ? 1 : 0;
      if (p_.probabilities[i] > proposed) rest.add(p_.tokens[i], p_.probabilities[i] - proposed);
    }
    rest.normalise();
    if (rest.size() > 0) p_ = rest;
  }
  static Distribution second_best(std::span<const float> row) {
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    TokenId second = best == 0 ? 1 : 0;
    for (TokenId token = 0; token < static_cast<TokenId>(row.size()); ++token) {
      if (token != best && row[static_cast<std::size_t>(token)] > row[static_cast<std::size_t>(second)]) second = token;
    }
    Distribution one;
    one.add(second, 1);
    return one;
  }

  Mistake mistake_;
  Distribution p_;
};

}  // namespace tandem::test
