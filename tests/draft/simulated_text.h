// A text whose acceptance is known, drafted by a simulated drafter of known cost: what a length policy must master
// without any model.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "draft/cost_model.h"
#include "draft/length_policy.h"

namespace tandem::test {

// Tokens of one kind: how sure the drafter is, how often it is right, and how many of all tokens are of this kind.
struct TokenType {
  double confidence, acceptance, share;
};

struct Costs {
  std::vector<RowSeconds> target;
  double draft_step = 0;
  double draft_row = 0;  // of each token more that a draft pass runs
  CostModel model() const {
    CostModel costs;
    costs.target = PassCosts(target);
    if (draft_step > 0)
      costs.draft = PassCosts(std::vector<RowSeconds>{{1, draft_step}, {65, draft_step + 64 * draft_row}});
    return costs;
  }
};

// Measured on the machine class with the 1.5B and its 0.5B, in units of a single row's pass.
inline Costs measured_costs() {
  return {{{1, 1}, {2, 1.04}, {3, 1.07}, {4, 1.12}, {5, 1.16}, {6, 1.2}, {7, 1.28}, {8, 1.36}, {12, 1.75}, {16, 2.1}},
          0.39,
          0.03};
}
// Kernels that pay for each row (algorithms.md section 0).
inline Costs steep_costs() {
  return {{{1, 27.75}, {2, 44.8}, {3, 62}, {4, 73.4}, {5, 90.5}, {6, 105}, {8, 159}, {12, 204}, {16, 212}}, 19.2, 3};
}
// Tiles of four rows: a pass costs the same up to the next multiple.
inline Costs tiled_costs(double draft_step) {
  return {{{1, 1}, {4, 1}, {5, 1.6}, {8, 1.6}, {9, 2.2}, {12, 2.2}, {13, 2.8}, {16, 2.8}}, draft_step, 0};
}

// The most expected tokens a second that any policy reaches which knows all of this: Dinkelbach's equation over the
// optimal stopping problem, solved exactly.
class BestPolicy {
 public:
  BestPolicy(const Costs& costs, std::vector<TokenType> types, int max_nodes)
      : costs_(costs.model()), types_(std::move(types)), max_nodes_(max_nodes) {}

  double tokens_a_second() {
    double low = 0, high = (max_nodes_ + 1) / costs_.target.seconds(1);
    for (int i = 0; i < 60; ++i) {
      lambda_ = (low + high) / 2;
      (1 + value(1, 1) - lambda_ * costs_.target.seconds(1) > 0 ? low : high) = lambda_;
    }
    return low;
  }

 private:
  double value(double reach, int nodes) const {
    if (nodes >= max_nodes_ || reach < 1e-3) return 0;
    double expected = -lambda_ * costs_.draft.seconds(1);
    const double row = lambda_ * (costs_.target.seconds(nodes + 1) - costs_.target.seconds(nodes));
    for (const TokenType& type : types_) {
      const double there = reach * type.acceptance;
      expected += type.share * std::max(0.0, there - row + value(there, nodes + 1));
    }
    return std::max(0.0, expected);
  }

  CostModel costs_;
  std::vector<TokenType> types_;
  int max_nodes_;
  double lambda_ = 0;
};

struct StepOutcome {
  int tokens, proposed;
  double seconds;
};

// Steps through the text under a policy.
class SimulatedText {
 public:
  SimulatedText(const Costs& costs, std::vector<TokenType> types, DraftSource source = DraftSource::model,
                std::uint64_t seed = 1)
      : costs_(costs.model()), types_(std::move(types)), source_(source), random_(seed) {}

  void set_types(std::vector<TokenType> types) { types_ = std::move(types); }
  void set_unseen(int tokens) { unseen_ = tokens; }  // tokens that the draft has yet to run

  StepOutcome step(LengthPolicy& policy, int wanted = 1000) {
    policy.begin_step({wanted - 1, kMaxTreeNodes});
    tree_.clear(0);
    double seconds = 0, path = 1;
    std::vector<double> acceptances{1};
    int feed = std::max(unseen_, 1);
    for (int node = 0; !tree_.full();) {
      DraftQuestion question{tree_.depth(node) + 1, tree_.size(), path, -1, source_};
      question.feed = feed;
      if (source_ == DraftSource::model) {
        bool allowed = policy.allow_draft_step(question);
        if (!allowed && feed > 2 * kReadAfresh) {  // as the model drafter does
          question.feed = feed = kReadAfresh;
          question.partial = true;
          allowed = policy.allow_draft_step(question);
        }
        if (!allowed) break;
        seconds += costs_.draft.seconds(feed);
        unseen_ = 0;
        feed = 1;
      }
      const TokenType& type = next_type();
      question.next_confidence = type.confidence;
      if (!policy.allow_row(question)) break;
      node = tree_.add(node, 1, ChildKind::deterministic, source_, static_cast<float>(type.confidence));
      path *= type.confidence;
      acceptances.push_back(type.acceptance);
    }
    Verdict verdict;
    verdict.extend(0);
    for (int node = 1; node < tree_.size(); ++node) {
      verdict.tested |= std::uint64_t{1} << node;
      if (uniform_(random_) >= acceptances[static_cast<std::size_t>(node)]) break;
      verdict.extend(node);
    }
    seconds += costs_.target.seconds(tree_.size());
    policy.observe(tree_, verdict);
    unseen_ += verdict.path_length - (seconds > costs_.target.seconds(tree_.size()) ? verdict.accepted() : 0);
    return {verdict.path_length, tree_.size() - 1, seconds};
  }

  // Tokens and seconds of at least so many tokens.
  StepOutcome run(LengthPolicy& policy, int tokens) {
    StepOutcome sum{};
    while (sum.tokens < tokens) {
      const StepOutcome one = step(policy, tokens - sum.tokens + kMaxTreeNodes);
      sum.tokens += one.tokens;
      sum.proposed += one.proposed;
      sum.seconds += one.seconds;
    }
    return sum;
  }

 private:
  static constexpr int kReadAfresh = 32;

  const TokenType& next_type() {
    double left = uniform_(random_);
    for (const TokenType& type : types_) {
      if ((left -= type.share) < 0) return type;
    }
    return types_.back();
  }

  CostModel costs_;
  std::vector<TokenType> types_;
  DraftSource source_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  TokenTree tree_;
  int unseen_ = 1;
};

}  // namespace tandem::test
