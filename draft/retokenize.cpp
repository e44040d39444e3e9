#include "draft/retokenize.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// Draft steps in a row that may give no further target token: a character is three or four of them at most, but a run
// of spaces may grow for ever.
constexpr int kFruitlessSteps = 4;

// Lets the draft take one step for one token if the step pays in the target's chain. The draft's own question knows how
// much it has to catch up on.
class OneStep final : public LengthPolicy {
 public:
  OneStep(LengthPolicy& policy, const DraftQuestion& step) : policy_(policy), step_(step) {}
  void begin_step(const DraftBudget&) override {}
  bool allow_draft_step(const DraftQuestion& own) override {
    step_.feed = own.feed;
    return !std::exchange(stepped_, true) && policy_.allow_draft_step(step_);
  }
  bool allow_row(const DraftQuestion& own) override {
    if (std::exchange(drawn_, true)) return false;
    if (own.next_confidence >= 0) confidence_ = own.next_confidence;
    return true;
  }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "one step"; }
  double confidence() const { return confidence_; }

 private:
  LengthPolicy& policy_;
  DraftQuestion step_;
  bool stepped_ = false, drawn_ = false;
  double confidence_ = 1;
};

}  // namespace

RetokenizingDrafter::RetokenizingDrafter(std::unique_ptr<Drafter> draft, const Tokenizer& target,
                                         const Tokenizer& draft_words)
    : draft_(std::move(draft)),
      draft_words_(draft_words),
      ends_(draft_words.vocabulary(), target.vocabulary()),
      translation_(target, draft_words),
      continuation_(target) {}

void RetokenizingDrafter::reset() {
  draft_->reset();
  translation_.reset();
}

// The policy is asked for each row as its token comes up, and the tree made at the end: until then more text may turn
// the last token into another, which then takes the row.
const TokenTree& RetokenizingDrafter::propose(Context& context, LengthPolicy& policy) {
  tree_.clear(context.tokens().back());
  const std::span<const TokenId> ids = translation_.follow(context.tokens());
  if (ids.empty() || !translation_.complete()) return tree_;
  draft_context_.clear();
  draft_context_.push(ids);
  continuation_.begin(context.tokens());

  int rows = 0;  // below the pending token, that the policy allowed
  for (int fruitless = 0; fruitless < kFruitlessSteps;) {
    const Wrote wrote = draft_step(policy);
    if (wrote == Wrote::nothing) break;
    const std::span<const Continuation::Candidate> candidates = continuation_.candidates();
    const int count = std::min(static_cast<int>(candidates.size()), kMaxTreeNodes - 1);
    fruitless = count > rows ? 0 : fruitless + 1;
    while (rows < count && policy.allow_row(question(rows + 1, candidates[static_cast<std::size_t>(rows)].confidence))) {
      ++rows;
    }
    if (rows < count || wrote == Wrote::last) break;
  }
  const auto candidates = continuation_.candidates();
  const std::size_t size = std::min(candidates.size(), static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < size; ++i) {
    tree_.add(static_cast<int>(i), candidates[i].token, ChildKind::deterministic, DraftSource::model,
              static_cast<float>(candidates[i].confidence));
  }
  return tree_;
}

// Runs the draft once, for one token of its own.
RetokenizingDrafter::Wrote RetokenizingDrafter::draft_step(LengthPolicy& policy) {
  const int depth = static_cast<int>(continuation_.candidates().size()) + 1;
  if (depth >= kMaxTreeNodes) return Wrote::nothing;
  OneStep step(policy, question(depth, -1));
  const TokenTree& drafted = draft_->propose(draft_context_, step);
  if (drafted.size() < 2) return Wrote::nothing;
  const TokenId token = drafted.token(1);
  const std::string_view bytes = draft_words_.bytes(token);
  if (!bytes.empty()) {
    draft_context_.push(token);
    continuation_.add(bytes, step.confidence());
    return continuation_.broken() ? Wrote::last : Wrote::text;
  }
  const auto end = ends_(token);
  if (!end) return Wrote::nothing;
  continuation_.finish(*end, step.confidence());
  return Wrote::last;
}

// About the node at this depth of the chain, of which the first `depth` - 1 candidates are the nodes before it.
DraftQuestion RetokenizingDrafter::question(int depth, double confidence) const {
  double path_confidence = 1;
  const auto before = continuation_.candidates().first(static_cast<std::size_t>(depth - 1));
  for (const Continuation::Candidate& candidate : before) path_confidence *= candidate.confidence;
  return {depth, depth, path_confidence, confidence, DraftSource::model, depth - 1};
}

}  // namespace tandem
