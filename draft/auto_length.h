// Drafts as long as it pays: the length that gives the most expected tokens a second.
#pragma once
#include <array>
#include <optional>

#include "draft/calibration.h"
#include "draft/cost_model.h"
#include "draft/length_policy.h"

namespace tandem {

// The renewal-reward optimum (algorithms.md section 4): with lambda the tokens a second that steps bring, a draft step
// or a row is taken iff the tokens that it is expected to add are worth at least lambda times the time that it adds.
// What one node would not pay a few together may (cost steps of T(rows), a first draft step that must catch up), so
// runs of up to kLookAhead nodes are weighed. Lambda is learned from modelled times, so decisions are functions of
// questions, verdicts and costs alone; those stay the saved ones unless `refresh`. Where the estimates say no, a probe
// within a share of kProbeShare of the time keeps them honest. Allocates nothing.
class AutoLength final : public LengthPolicy {
 public:
  // `max_nodes`: most nodes of a tree, node 0 included. `min_probability`: as for FixedLength. `refresh`: costs follow
  // the measured times, and catching up is charged as it comes; without, decisions are the same whatever the clock says
  // and whatever came before the prompt, all of which counts as unread until the first draft step.
  AutoLength(const CostModel& costs, int max_nodes, double min_probability, bool refresh);

  void begin_step(const DraftBudget& budget) override;
  bool allow_draft_step(const DraftQuestion& question) override;
  bool allow_row(const DraftQuestion& question) override;
  bool allow_trial(const DraftQuestion& step, int reads) override;
  void observe_trial(DraftSource source, double confidence, bool came) override;
  bool prefers(const DraftQuestion& known, const DraftQuestion& step) override;
  void observe(const TokenTree& tree, const Verdict& verdict) override;
  void observe_seconds(double propose, double pass, int rows) override;
  void reset() override;
  std::string_view name() const override { return "auto"; }

  double tokens_a_second() const;
  const Calibration& calibration() const { return calibration_; }

 private:
  struct Node {
    double reach = 1;       // probability that it is accepted
    double left = 1;        // that, once it is, none of its children so far is
    double confidence = 1;  // that it was allowed with
    int children = 0;
    DraftSource source = DraftSource::none;
    int run = 0;  // nodes of its source in a row that end with it
  };
  // A run of nodes below one another: the first, and those after it.
  struct Run {
    double reach;                        // probability that the parent is accepted and no earlier child
    double first_acceptance;             // negative: not known yet
    double first_seconds, next_seconds;  // of drafting
    int nodes;                           // of the tree so far
    int most;                            // nodes that may still be added
    DraftSource source;
  };

  bool fits(const DraftQuestion& question) const;
  int feed_of(const DraftQuestion& question) const;
  int run_with(const DraftQuestion& question) const;
  int longest_run(DraftSource source) const;
  int parent_of(const DraftQuestion& question) const;
  bool has_children(const DraftQuestion& question) const;
  Run run_of(const DraftQuestion& question) const;
  Run run_of_steps(const DraftQuestion& question) const;
  double best_value(const Run& run) const;
  double best_value(const Run& run, const Calibration::Prospects& prospects, bool selective) const;
  double amortised_draft_seconds(int feed) const;
  bool probe(const DraftQuestion& question, double seconds);
  void note_runs(const TokenTree& tree, const Verdict& verdict);
  void add_node(const DraftQuestion& question, double acceptance);

  CostModel costs_;
  int max_nodes_;
  double min_probability_;
  bool refresh_;

  // learned from the text
  Calibration calibration_;
  double tokens_, seconds_;  // exponential sums over steps
  double credit_;            // seconds that probes may lose
  std::array<int, kDraftSources> steps_since_probe_;
  std::array<int, kDraftSources> longest_;  // accepted in one run of late
  int generated_;

  // of the step at hand
  DraftBudget budget_;
  std::array<Node, kMaxTreeNodes> nodes_;
  double draft_seconds_ = 0;  // modelled, catching up spread over what it serves
  double feed_seconds_ = 0;   // modelled, as they are spent now
  bool drafted_ = false;      // in this answer, this step included
  std::optional<DraftSource> probing_;
};

}  // namespace tandem
