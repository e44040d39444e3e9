// Proposes nothing: plain decoding as a drafter.
#pragma once
#include "draft/drafter.h"

namespace tandem {

class NoneDrafter final : public Drafter {
 public:
  const TokenTree& propose(Context& context, LengthPolicy& policy) override;
  void observe(const Observation&, const Context&) override {}
  void reset() override {}
  std::string_view name() const override { return "none"; }

 private:
  TokenTree tree_;
};

}  // namespace tandem
