// A grammar as the constraint of one sequence.
#pragma once
#include <memory>
#include <vector>

#include "src/sample/constraint.h"
#include "src/sample/grammar/token_masks.h"

namespace tandem {

class GrammarConstraint final : public Constraint {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // of states and masks when an answer begins

  // `masks` may serve several sequences, one at a time between two calls of begin().
  explicit GrammarConstraint(std::shared_ptr<TokenMasks> masks) : masks_(std::move(masks)) { begin(0); }

  void begin(int prompt) override;
  int state(const Context& context) override;
  int state_behind(int tokens) const override { return states_[static_cast<std::size_t>(tokens)]; }
  int after(int state, TokenId token) override { return masks_->after(state, token); }
  const TokenMask& mask(int state) override { return masks_->mask(state); }
  bool admits(int state, TokenId token) override { return masks_->admits(state, token); }
  bool complete(int state) override { return state != TokenMasks::kOver && masks_->automaton().complete(state); }
  TokenId only(int state) override { return masks_->only(state); }
  TokenId likely(int state) override;
  std::optional<int> most_left(int state) override;
  std::string explain(const Context& context) override;

 private:
  void follow(std::size_t from);

  std::shared_ptr<TokenMasks> masks_;
  int prompt_ = 0;
  int epoch_ = 0;                // of the automaton that the states are of
  std::vector<TokenId> tokens_;  // of the answer
  std::vector<int> states_;      // behind each number of them, from 0
};

}  // namespace tandem
