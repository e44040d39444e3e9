// The node arithmetic of rejection and block verification over dense arrays, with the mistakes of the field as
// switches. Without a fault it is a second, independent writing of the rules.
#pragma once
#include <algorithm>
#include <vector>

#include "src/base/distribution.h"
#include "src/base/token_tree.h"
#include "tests/verify/toy.h"

namespace tandem::testing {

enum class Fault {
  none,
  residual_is_target,             // correction from p
  residual_zeroes_child,          // correction from p without the rejected token
  bonus_from_proposal,            // q where p belongs after full acceptance
  no_renormalisation,             // siblings: the proposal loses its token but is not scaled
  deterministic_by_ratio,         // a deterministic child accepted with p / q
  proposal_keeps_deterministic,   // mixed nodes: deterministic tokens stay in q
  deterministic_leaves_residual,  // a rejected deterministic child stays in P
  accepts_always,
  weight_not_capped,             // block: w may exceed 1
  weight_stays_after_rejection,  // block: h = S / S instead of S / (S + 1 - w)
  residual_without_weight        // block: max(P - Q, 0) where max(w P - Q, 0) belongs
};

class FaultyState {
 public:
  static constexpr int kVocab = 8;
  explicit FaultyState(Fault fault = Fault::none) : fault_(fault) {}

  void begin(const Distribution& target, const Distribution* proposal, double weight = 1) {
    w_ = weight;
    p_.assign(kVocab, 0);
    q_.assign(kVocab, 0);
    for (TokenId i = 0; i < kVocab; ++i) {
      p_[i] = target[i];
      if (proposal != nullptr) q_[i] = (*proposal)[i];
    }
    rejections_ = 0;
  }

  double accept_probability(TokenId child, ChildKind kind) {
    if (fault_ == Fault::accepts_always) return 1;
    if (kind == ChildKind::deterministic && fault_ != Fault::deterministic_by_ratio)
      return std::min(1.0, w_ * p_[child]);
    const double ratio = q_[child] > 0 ? w_ * p_[child] / q_[child] : 0;
    return fault_ == Fault::weight_not_capped ? ratio : std::min(1.0, ratio);
  }

  void reject(TokenId child, ChildKind kind) {
    ++rejections_;
    const std::vector<double> target = p_;
    const bool deterministic = kind == ChildKind::deterministic;
    if (!deterministic && q_[child] == 0) return;
    double mass = 0;
    for (TokenId i = 0; i < kVocab; ++i) {
      const double drawn = deterministic ? (i == child ? 1.0 : 0.0) : q_[i];
      const double left = std::max(w_ * p_[i] - drawn, 0.0);
      mass += left;
      p_[i] = fault_ == Fault::residual_without_weight ? std::max(p_[i] - drawn, 0.0) : left;
    }
    const double total = fault_ == Fault::weight_stays_after_rejection ? mass : mass + (1 - w_);
    w_ = total > 0 ? mass / total : 1;
    if (fault_ == Fault::residual_is_target) p_ = target;
    if (fault_ == Fault::deterministic_leaves_residual && deterministic) p_ = target;
    if (fault_ == Fault::residual_zeroes_child) p_ = target, p_[child] = 0;
    if (!scale(p_)) p_ = target;
    if (fault_ == Fault::proposal_keeps_deterministic && deterministic) return;
    q_[child] = 0;
    if (fault_ != Fault::no_renormalisation || deterministic) scale(q_);
  }

  const Distribution& residual() {
    out_ = support_of(fault_ == Fault::bonus_from_proposal && rejections_ == 0 ? q_ : p_);
    return out_;
  }
  double weight() const { return w_; }

 private:
  static bool scale(std::vector<double>& law) {
    double total = 0;
    for (const double probability : law) total += probability;
    if (total <= 0) return false;
    for (double& probability : law) probability /= total;
    return true;
  }

  Fault fault_;
  std::vector<double> p_, q_;
  double w_ = 1;
  int rejections_ = 0;
  Distribution out_;
};

}  // namespace tandem::testing
