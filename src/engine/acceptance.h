// What becomes of drafts, and what the two models' distributions say about it: the counts behind `tandem accept`.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "draft/length_policy.h"
#include "src/base/metrics.h"
#include "src/engine/session.h"

namespace tandem {

// Bins of what a drafter says of its candidates; these are the upper borders of all but the last.
inline constexpr std::array kConfidenceBorders{0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99};
inline constexpr int kConfidenceBins = static_cast<int>(kConfidenceBorders.size()) + 1;
int confidence_bin(double confidence);

// One place of a proposal, counted from 1 behind the pending token, in steps: a tree has several drafts at one place.
struct PositionCounts {
  std::int64_t room = 0;      // steps that could have drafted so far: tokens were still wanted, the context had room
  std::int64_t drafted = 0;   // of those, steps with a draft here
  std::int64_t tested = 0;    // of those, steps whose path reached it, so that a draft here was decided about
  std::int64_t accepted = 0;  // of those, steps that accepted one
  std::int64_t passes = 0;    // passes of the draft model for drafts here
};

struct BinCounts {
  std::int64_t tested = 0, accepted = 0;
  double confidence = 0;  // summed over the tested
};

// Tested drafts of one kind, against what rejection sampling should accept of them: given everything before the test,
// a draft drawn from q stands with probability sum min(p, q), a deterministic one with p(x); p and q are what earlier
// siblings left of them. Under verify.rule rejection accepted - expected is a martingale with this variance.
struct ExpectedCounts {
  std::int64_t tested = 0, accepted = 0;
  double expected = 0, variance = 0;
};

struct AcceptanceCounts {
  Metrics metrics;  // summed over answers
  std::int64_t answers = 0;
  std::array<PositionCounts, kMaxTreeNodes> positions{};  // index = position - 1
  std::array<std::array<BinCounts, kConfidenceBins>, kDraftSources> bins{};
  ExpectedCounts sampled, deterministic;
  std::int64_t compared = 0;             // tested places of the path
  std::int64_t same_top = 0;             // of those, where the draft's likeliest token is the target's
  std::map<int, std::int64_t> catch_up;  // passes of the draft model that read more than one token, by how many
  // [length][rows]: steps with room for so many drafts in a row, by the rows that they would have checked had they
  // drafted no deeper than that.
  std::array<std::array<std::int64_t, kMaxTreeNodes + 1>, kMaxTreeNodes> steps_by_length_and_rows{};

  void add(const AcceptanceCounts& other);
};

// What the policy was asked in one step.
struct StepNotes {
  int room = 0;                                      // longest path that the step might have drafted
  std::array<double, kMaxTreeNodes> confidence{};    // by node; negative: not said
  std::array<std::int64_t, kMaxTreeNodes> passes{};  // draft steps by depth - 1
  std::vector<int> feeds;                            // tokens that each of them read
};

// A policy that decides as another one does, and notes what it was asked.
class NotingPolicy final : public LengthPolicy {
 public:
  // `notes` outlives the policy and holds the step at hand.
  NotingPolicy(std::unique_ptr<LengthPolicy> policy, StepNotes& notes) : policy_(std::move(policy)), notes_(notes) {}

  void begin_step(const DraftBudget& budget) override;
  bool allow_draft_step(const DraftQuestion& question) override;
  bool allow_row(const DraftQuestion& question) override;
  bool prefers(const DraftQuestion& known, const DraftQuestion& step) override { return policy_->prefers(known, step); }
  void observe(const TokenTree& tree, const Verdict& verdict) override { policy_->observe(tree, verdict); }
  void observe_seconds(double propose, double pass, int rows) override {
    policy_->observe_seconds(propose, pass, rows);
  }
  bool allow_trial(const DraftQuestion& step, int reads) override { return policy_->allow_trial(step, reads); }
  void observe_trial(DraftSource source, double confidence, bool came) override {
    policy_->observe_trial(source, confidence, came);
  }
  void reset() override { policy_->reset(); }
  std::string_view name() const override { return policy_->name(); }

 private:
  std::unique_ptr<LengthPolicy> policy_;
  StepNotes& notes_;
};

// Counts the step that `engine` has just made with a NotingPolicy's notes. `before`: its context when the step began;
// left as it was. Leaves metrics and answers alone.
void count_step(Engine& engine, Context& before, const StepNotes& notes, AcceptanceCounts& counts);

// One answer with its counts.
struct MeasuredAnswer {
  GenerationResult result;
  AcceptanceCounts counts;
  std::string warning;  // of the drafter, e.g. that its context is full; empty = none
};

// Answers a prompt as `tandem generate` would, with an engine of its own of this choice, and counts what became of the
// drafts. Times are those of the steps alone: counting is not in them. Errors as of Generation.
MeasuredAnswer measure_acceptance(const Session& session, EngineChoice choice, std::span<const TokenId> prompt,
                                  StopRules rules);

}  // namespace tandem
