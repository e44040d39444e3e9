// Drafts from the text where it repeats itself, with a model elsewhere.
#pragma once
#include "draft/drafter.h"
#include "draft/ngram.h"

namespace tandem {

// One tree of both sources: the longest repeat first where the policy thinks it worth more than the model's draft, then
// the model's nodes below and beside it while they pay, then, for nothing but their rows, the repeats that the path of
// first children has led to.
class HybridDrafter final : public GrowingDrafter {
 public:
  HybridDrafter(std::unique_ptr<SteppingDrafter> model, std::unique_ptr<NgramDrafter> ngram)
      : model_(std::move(model)), ngram_(std::move(ngram)) {}

  void grow(TokenTree& tree, Context& context, LengthPolicy& policy) override;
  void observe(const Observation&, const Context&) override {}
  void begin() override { model_->begin(); }
  std::string take_warning() override { return model_->take_warning(); }
  void reset() override;
  std::string_view name() const override { return "hybrid"; }

 private:
  std::unique_ptr<SteppingDrafter> model_;
  std::unique_ptr<NgramDrafter> ngram_;
};

}  // namespace tandem
