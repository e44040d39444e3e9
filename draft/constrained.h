// Drafts what the answer's constraint leaves no choice about, before anything else does.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "draft/drafter.h"
#include "src/sample/constraint.h"

namespace tandem {

// Opens each proposal with a chain of deterministic children, for nothing but their rows: the only token that may
// follow, which is certain to be accepted, or, where the next bytes are certain and several tokens spell them, the
// longest such token, about which the target decides. The other drafter goes on below.
class ConstrainedDrafter final : public Drafter {
 public:
  static constexpr double kSpelled = 0.95;  // confidence in a token of certain bytes: most texts take the longest

  ConstrainedDrafter(std::unique_ptr<GrowingDrafter> inner, std::shared_ptr<Constraint> constraint)
      : inner_(std::move(inner)), constraint_(std::move(constraint)) {}

  const TokenTree& propose(Context& context, LengthPolicy& policy) override;
  void observe(const Observation& observation, const Context& context) override {
    inner_->observe(observation, context);
  }
  void begin() override { inner_->begin(); }
  std::string take_warning() override { return inner_->take_warning(); }
  void reset() override { inner_->reset(); }
  std::string_view name() const override { return inner_->name(); }

 private:
  std::unique_ptr<GrowingDrafter> inner_;
  std::shared_ptr<Constraint> constraint_;
  TokenTree tree_;
};

}  // namespace tandem
