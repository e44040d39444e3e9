// Drafts what the answer's constraint leaves no choice about, besides what another drafter does.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "draft/admission.h"
#include "draft/drafter.h"

namespace tandem {

// Opens each proposal with a chain of certain tokens (Admission::add_certain), for nothing but their rows, and ends the
// path of first children that the other drafter grew from there with those that follow it.
class ConstrainedDrafter final : public Drafter {
 public:
  ConstrainedDrafter(std::unique_ptr<GrowingDrafter> inner, std::shared_ptr<Constraint> constraint)
      : inner_(std::move(inner)), admission_(std::move(constraint)) {}

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
  Admission admission_;
  TokenTree tree_;
};

}  // namespace tandem
