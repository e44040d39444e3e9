#include "verify/node_state.h"

#include <algorithm>
#include <cstddef>

namespace tandem {

double subtract_and_normalise(Distribution& p, const Distribution& q, double scale) {
  constexpr std::size_t kMuchSmaller = 16;
  const bool search = p.size() < q.size() / kMuchSmaller;
  auto at = q.tokens.begin();
  std::size_t kept = 0;
  double mass = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const TokenId token = p.tokens[i];
    if (search) {
      at = std::lower_bound(at, q.tokens.end(), token);
    } else {
      while (at != q.tokens.end() && *at < token) ++at;
    }
    const bool shared = at != q.tokens.end() && *at == token;
    const double rest =
        scale * p.probabilities[i] - (shared ? q.probabilities[static_cast<std::size_t>(at - q.tokens.begin())] : 0.0);
    if (rest <= 0) continue;
    p.tokens[kept] = token;
    p.probabilities[kept] = rest;
    mass += rest;
    ++kept;
  }
  if (kept == 0) return 0;
  p.tokens.resize(kept);
  p.probabilities.resize(kept);
  p.normalise();
  return mass;
}

NodeState::NodeState() { removed_.reserve(kMaxTreeNodes); }

void NodeState::begin(const Distribution& target, const Distribution* proposal, double weight) {
  p_ = &target;
  q_ = proposal;
  weight_ = weight;
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
  const double p = weight_ * (*p_)[child];
  if (kind == ChildKind::deterministic) return std::min(p, 1.0);
  const double q = q_ != nullptr ? proposal_now()[child] : 0.0;
  if (q == 0) return 0;
  return p < q ? p / q : 1.0;
}

void NodeState::reject(TokenId child, ChildKind kind) {
  if (kind == ChildKind::deterministic) {
    reject_deterministic(child);
  } else {
    if (q_ == nullptr || proposal_now()[child] == 0) return;
    reject_sampled();
  }
  if (q_ != nullptr) removed_.push_back(child);
}

void NodeState::reject_sampled() {
  if (p_ != &own_p_) own_p_ = *p_;
  p_ = &own_p_;
  set_weight(subtract_and_normalise(own_p_, *q_, weight_));
}

void NodeState::reject_deterministic(TokenId child) {
  const double share = (*p_)[child];
  if (share == 0) return;
  if (p_->size() == 1) return set_weight(0);
  if (p_ != &own_p_) own_p_ = *p_;
  p_ = &own_p_;
  own_p_.remove(child);
  set_weight(weight_ * std::max(1 - share, 0.0));
}

// 0 / 0: target and proposal agree and the node was sure to be reached, so no rejection was possible.
void NodeState::set_weight(double residual_mass) {
  const double total = residual_mass + (1 - weight_);
  weight_ = total > 0 ? residual_mass / total : 1;
}

}  // namespace tandem
