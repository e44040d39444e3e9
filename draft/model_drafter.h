// Drafts with a smaller model of the same vocabulary.
#pragma once
#include <string>
#include <vector>

#include "draft/drafter.h"
#include "src/model/language_model.h"
#include "src/sample/sampler.h"

namespace tandem {

// A chain of sampled children, each drawn from the draft's distribution after the whole sampler chain. The cache is
// brought up to date from the committed tokens at each proposal, so acceptance, rejection, cut tokens and a new prompt
// are one case.
class ModelDrafter final : public GrowingDrafter {
 public:
  // `model` outlives this. `context`: slots of the draft's cache, at most the model's limit (Error(model) otherwise).
  // `mask`: ids that both vocabularies may produce. `draw`: as the rule that checks the proposals wants it.
  // Error(config) when the model's head was trimmed to tokens that mask and bias all forbid.
  ModelDrafter(LanguageModel& model, int context, KvType kv_type, SamplingOptions sampling, Noise noise, TokenMask mask,
               DraftDraw draw = DraftDraw::independent);

  // Throws Error(numeric) for a row of logits without a usable number.
  const TokenTree& propose(Context& context, LengthPolicy& policy) override;
  void observe(const Observation&, const Context&) override {}
  std::string take_warning() override;
  void reset() override;
  std::string_view name() const override { return "model"; }

  void grow(TokenTree& tree, Context& context, LengthPolicy& policy) override;
  DraftQuestion first(const Context& context) override;

  // Tokens whose keys and values the cache holds: after a proposal that drafted, the context and all drafted tokens but
  // the last.
  std::span<const TokenId> cached() const { return cached_; }
  const KvCache& cache() const { return cache_; }

 private:
  void extend(TokenTree& tree, int node, Context& context, LengthPolicy& policy);
  DraftQuestion first(const TokenTree& tree, int node, std::span<const TokenId> tokens) const;
  bool can_draft(std::span<const TokenId> tokens);
  double confidence(std::span<const float> logits) const;
  std::size_t shared(std::span<const TokenId> tokens) const;
  void forget_differences(std::span<const TokenId> tokens);
  std::span<const float> feed(std::span<const TokenId> tokens);

  LanguageModel& model_;
  DraftDraw draw_;
  Sampler sampler_;
  KvCache cache_;
  int room_;  // tokens the cache and the model's positions have room for
  std::vector<TokenId> cached_;
  std::vector<Position> positions_;  // 0, 1, 2, ...
  TokenTree tree_;
  Distribution proposal_;
  std::string warning_;
  bool said_full_ = false, said_unknown_ = false;
};

}  // namespace tandem
