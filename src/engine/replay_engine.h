// One answer through the engine of a real run, over models that remember and a clock that adds up.
#pragma once
#include <memory>

#include "src/engine/engine.h"
#include "src/engine/replay.h"

namespace tandem {

// Seconds that have passed in a replay.
struct ReplayClock {
  double draft = 0, target = 0;
};

// A length policy that is told the replay's seconds in place of the engine's. It lets no draft try itself on the
// prompt, of which nothing is recorded.
class ReplayPolicy final : public LengthPolicy {
 public:
  // `clock` outlives this.
  ReplayPolicy(std::unique_ptr<LengthPolicy> policy, const ReplayClock& clock)
      : policy_(std::move(policy)), clock_(clock) {}

  void begin_step(const DraftBudget& budget) override {
    before_ = clock_;
    policy_->begin_step(budget);
  }
  bool allow_draft_step(const DraftQuestion& question) override { return policy_->allow_draft_step(question); }
  bool allow_row(const DraftQuestion& question) override { return policy_->allow_row(question); }
  bool prefers(const DraftQuestion& known, const DraftQuestion& step) override { return policy_->prefers(known, step); }
  void observe(const TokenTree& tree, const Verdict& verdict) override { policy_->observe(tree, verdict); }
  void observe_seconds(double, double, int rows) override {
    policy_->observe_seconds(clock_.draft - before_.draft, clock_.target - before_.target, rows);
  }
  void reset() override { policy_->reset(); }
  std::string_view name() const override { return policy_->name(); }

 private:
  std::unique_ptr<LengthPolicy> policy_;
  const ReplayClock& clock_;
  ReplayClock before_;
};

class ReplayEngine {
 public:
  // All outlive this.
  ReplayEngine(const RecordedAnswer& answer, const RecordingSettings& settings, const ReplayVocabulary& vocabulary,
               const ReplayCosts& costs, ReplayRows& rows, const ReplaySetting& setting);

  // Throws Error(file) where the recorded rows do not give the recorded text.
  ReplayedAnswer run();

 private:
  ReplayModel::Setup setup(bool draft);
  Engine make_engine(const ReplaySetting& setting);
  void require_text(std::span<const TokenId> committed) const;

  const RecordedAnswer& answer_;
  const RecordingSettings& settings_;
  const ReplayVocabulary& vocabulary_;
  const ReplayCosts& costs_;
  ReplayRows& rows_;
  ReplayClock clock_;
  ReplayModel target_, draft_;
  Engine engine_;
};

}  // namespace tandem
