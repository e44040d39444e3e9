#include "verify/rejection.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tandem {

void subtract_and_normalise(Distribution& p, const Distribution& q) {
  constexpr std::size_t kMuchSmaller = 16;
  const bool search = p.size() < q.size() / kMuchSmaller;
  auto at = q.tokens.begin();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const TokenId token = p.tokens[i];
    if (search) {
      at = std::lower_bound(at, q.tokens.end(), token);
    } else {
      while (at != q.tokens.end() && *at < token) ++at;
    }
    const bool shared = at != q.tokens.end() && *at == token;
    const double rest =
        p.probabilities[i] - (shared ? q.probabilities[static_cast<std::size_t>(at - q.tokens.begin())] : 0.0);
    if (rest <= 0) continue;
    p.tokens[kept] = token;
    p.probabilities[kept] = rest;
    ++kept;
  }
  if (kept == 0) return;
  p.tokens.resize(kept);
  p.probabilities.resize(kept);
  p.normalise();
}

NodeState::NodeState() { removed_.reserve(kMaxTreeNodes); }

void NodeState::begin(const Distribution& target, const Distribution* proposal) {
  p_ = &target;
  q_ = proposal;
  removed_.clear();
}

const Distribution& NodeState::proposal_now() {
  if (!removed_.empty()) {
    if (q_ != &own_q_) own_q_ = *q_;
    q_ = &own_q_;
    for (const TokenId token : removed_) own_q_.remove(token);
    removed_.clear();
  }
  return *q_;
}

double NodeState::accept_probability(TokenId child, ChildKind kind) {
  const double p = (*p_)[child];
  if (kind == ChildKind::deterministic) return std::min(p, 1.0);
  const double q = q_ != nullptr ? proposal_now()[child] : 0.0;
  if (q == 0) return 0;
  return p < q ? p / q : 1.0;
}

void NodeState::reject(TokenId child, ChildKind kind) {
  const bool sampled = kind == ChildKind::sampled;
  if (sampled && (q_ == nullptr || proposal_now()[child] == 0)) return;
  if (sampled || ((*p_)[child] > 0 && p_->size() > 1)) {
    if (p_ != &own_p_) own_p_ = *p_;
    p_ = &own_p_;
    if (sampled) {
      subtract_and_normalise(own_p_, *q_);
    } else {
      own_p_.remove(child);
    }
  }
  if (q_ != nullptr) removed_.push_back(child);
}

namespace {

class RejectionVerifier final : public Verifier {
 public:
  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    Verdict verdict;
    const int committed = context.size();
    try {
      decide(tree, logits, sampler, context, verdict);
    } catch (...) {
      context.pop(context.size() - committed);
      throw;
    }
    context.push(verdict.next);
    return verdict;
  }

  std::string_view name() const override { return "rejection"; }
  bool lossless() const override { return true; }

 private:
  void decide(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context, Verdict& verdict) {
    const std::uint32_t start = context.position();
    const auto target_at = [&](int node) -> const Distribution& {
      if (node > 0) context.push(tree.token(node));  // a row's history is the path to its node
      sampler.distribution(logits.row(node), context, target_);
      return target_;
    };
    const auto accepts = [&](int child, double probability) {
      return sampler.uniform(start, child, DrawPurpose::accept) < probability;
    };
    const Distribution& next = follow_proposal(tree, state_, verdict, target_at, accepts);
    const int last = verdict.path().back();
    // Every other draw is keyed by the step's start: re-using a position's own noise after a rejection would bias.
    verdict.next = tree.size() == 1 ? sampler.draw_with_noise(next, start)
                                    : sampler.draw(next, start, last, DrawPurpose::correction);
  }

  Distribution target_;
  NodeState state_;
};

}  // namespace

std::unique_ptr<Verifier> make_rejection_verifier() { return std::make_unique<RejectionVerifier>(); }

}  // namespace tandem
