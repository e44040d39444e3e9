#include "draft/retokenize.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// Draft steps in a row that may give no further target token: a character is three or four of them at most, but a run
// of spaces may grow for ever.
constexpr int kFruitlessSteps = 4;

// Lets the draft take one step for one token if the step pays in the target's chain. The draft's own questions know how
// much it has to catch up on, and whether it may do so otherwise.
class OneStep final : public LengthPolicy {
 public:
  OneStep(LengthPolicy& policy, const DraftQuestion& step) : policy_(policy), step_(step) {}
  void begin_step(const DraftBudget&) override {}
  bool allow_draft_step(const DraftQuestion& own) override {
    if (stepped_) return false;
    if (feed_ == 0) feed_ = own.feed;
    step_.feed = own.feed;
    step_.partial = own.partial;
    stepped_ = policy_.allow_draft_step(step_);
    return stepped_;
  }
  bool allow_row(const DraftQuestion& own) override {
    if (std::exchange(drawn_, true)) return false;
    if (own.next_confidence >= 0) confidence_ = own.next_confidence;
    return true;
  }
  bool allow_trial(const DraftQuestion& own, int reads) override {
    DraftQuestion step = step_;
    step.partial = own.partial;
    return policy_.allow_trial(step, reads);
  }
  void observe_trial(DraftSource source, double confidence, bool came) override {
    policy_.observe_trial(source, confidence, came);
  }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "one step"; }
  double confidence() const { return confidence_; }
  int feed() const { return feed_; }  // of the first question; 0: none came

 private:
  LengthPolicy& policy_;
  DraftQuestion step_;
  int feed_ = 0;
  bool stepped_ = false, drawn_ = false;
  double confidence_ = 1;
};

}  // namespace

RetokenizingDrafter::RetokenizingDrafter(std::unique_ptr<Drafter> draft, const Tokenizer& target,
                                         const Tokenizer& draft_words, std::shared_ptr<Constraint> constraint)
    : draft_(std::move(draft)),
      target_(target),
      draft_words_(draft_words),
      ends_(draft_words.vocabulary(), target.vocabulary()),
      translation_(target, draft_words),
      continuation_(target),
      admission_(std::move(constraint)) {}

void RetokenizingDrafter::reset() {
  draft_->reset();
  translation_.reset();
}

void RetokenizingDrafter::grow(TokenTree& tree, Context& context, LengthPolicy& policy) {
  int node = tree.first_leaf();
  admission_.begin(context);
  if (admission_.complete(tree, node) || !read(tree, node, context)) return;
  const auto rows = static_cast<std::size_t>(write(tree, node, policy));
  const std::span<const Continuation::Candidate> candidates = continuation_.candidates();
  for (const Continuation::Candidate& candidate : candidates.first(std::min(candidates.size(), rows))) {
    if (!admission_.admits(tree, node, candidate.token)) return;  // the draft knows nothing of a constraint
    node = tree.add(node, candidate.token, ChildKind::deterministic, DraftSource::model,
                    static_cast<float>(candidate.confidence));
  }
}

DraftQuestion RetokenizingDrafter::first(const TokenTree& tree, Context& context) {
  const int node = tree.first_leaf();
  DraftQuestion first{tree.depth(node) + 1, tree.size(), tree.path_confidence(node), -1, DraftSource::model, node};
  FixedLength refuses(0, 1, 0);
  OneStep step(refuses, first);
  if (read(tree, node, context)) draft_->propose(draft_context_, step);
  first.feed = std::max(step.feed(), 1);
  return first;
}

// Lets the draft read the text up to `node`. False when there is nothing that it could go on from.
bool RetokenizingDrafter::read(const TokenTree& tree, int node, Context& context) {
  const Pushed pushed(context);
  for (int i = 1; i <= node; ++i) {
    if ((tree.ancestors(node) >> i & 1) == 0) continue;
    if (target_.bytes(tree.token(i)).empty()) return false;  // nothing follows the end of a text
    context.push(tree.token(i));
  }
  const std::span<const TokenId> tokens = context.tokens();
  const std::span<const TokenId> ids = translation_.follow(tokens, static_cast<std::size_t>(tree.depth(node)));
  if (ids.empty() || !translation_.complete()) return false;
  draft_context_.clear();
  draft_context_.push(ids);
  continuation_.begin(tokens);
  begins_ = translation_.begins();
  return true;
}

// Drafts text below `node` while it pays, and returns how many rows the policy allowed. It is asked for each row as its
// token comes up, and the tree made at the end: until then more text may turn the last token into another, which then
// takes the row.
int RetokenizingDrafter::write(const TokenTree& tree, int node, LengthPolicy& policy) {
  const std::size_t room = static_cast<std::size_t>(kMaxTreeNodes - tree.size());
  std::size_t rows = 0;
  for (int fruitless = 0; fruitless < kFruitlessSteps && continuation_.candidates().size() < room;) {
    const std::size_t next = continuation_.candidates().size();
    const Wrote wrote = draft_step(question(tree, node, next, -1), policy);
    if (wrote == Wrote::nothing) break;
    const std::span<const Continuation::Candidate> candidates = continuation_.candidates();
    const std::size_t count = std::min(candidates.size(), room);
    fruitless = count > rows ? 0 : fruitless + 1;
    while (rows < count && policy.allow_row(question(tree, node, rows, candidates[rows].confidence))) ++rows;
    if (rows < count || wrote == Wrote::last) break;
  }
  return static_cast<int>(rows);
}

// Runs the draft once, for one token of its own.
RetokenizingDrafter::Wrote RetokenizingDrafter::draft_step(const DraftQuestion& question, LengthPolicy& policy) {
  OneStep step(policy, question);
  const TokenTree& drafted = draft_->propose(draft_context_, step);
  if (drafted.size() < 2) return Wrote::nothing;
  const TokenId token = drafted.token(1);
  std::string_view bytes = draft_words_.bytes(token);
  if (!bytes.empty()) {
    draft_context_.push(token);
    // Its own way to begin a text, not a part of that.
    if (std::exchange(begins_, false) && draft_words_.adds_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
    continuation_.add(bytes, step.confidence());
    return continuation_.broken() ? Wrote::last : Wrote::text;
  }
  const auto end = ends_(token);
  if (!end) return Wrote::nothing;
  continuation_.finish(*end, step.confidence());
  return Wrote::last;
}

// About the node of this candidate, those before it hanging below one another and the first below `node`.
DraftQuestion RetokenizingDrafter::question(const TokenTree& tree, int node, std::size_t candidate,
                                            double confidence) const {
  double path_confidence = tree.path_confidence(node);
  for (const Continuation::Candidate& before : continuation_.candidates().first(candidate)) {
    path_confidence *= before.confidence;
  }
  const int place = static_cast<int>(candidate);
  const int parent = place == 0 ? node : tree.size() + place - 1;
  return {tree.depth(node) + place + 1, tree.size() + place, path_confidence, confidence, DraftSource::model, parent};
}

}  // namespace tandem
