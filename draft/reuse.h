// Drafts without a model: from the text where it repeats itself, elsewhere from what the target thought likely before.
#pragma once
#include <memory>

#include "draft/ngram.h"
#include "draft/recycle.h"

namespace tandem {

// The chain of the longest match where the policy wants one, else the small tree of the last successors. What `hybrid`
// is without a draft model.
class ReuseDrafter final : public GrowingDrafter {
 public:
  ReuseDrafter(std::unique_ptr<NgramDrafter> ngram, std::unique_ptr<RecycleDrafter> recycle)
      : ngram_(std::move(ngram)), recycle_(std::move(recycle)) {}

  // Below the path of first children.
  void grow(TokenTree& tree, Context& context, LengthPolicy& policy) override;
  void observe(const Observation& observation, const Context& context) override {
    recycle_->observe(observation, context);
  }
  void begin() override { recycle_->begin(); }
  void reset() override;
  std::string_view name() const override { return "hybrid"; }

 private:
  std::unique_ptr<NgramDrafter> ngram_;
  std::unique_ptr<RecycleDrafter> recycle_;
};

}  // namespace tandem
