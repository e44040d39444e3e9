#include "draft/auto_length.h"

#include <algorithm>
#include <limits>

namespace tandem {
namespace {

constexpr int kLookAhead = 8;           // nodes of a run that are weighed together
constexpr double kStepMemory = 48;      // steps behind lambda
constexpr double kProbeShare = 0.0095;  // of the time that probes may lose
constexpr int kProbeSpacing = 8;        // steps between two probes of a source, unless the last one succeeded
constexpr int kFirstDepth = 3;          // of a source that has shown nothing yet; what is accepted lets it grow
constexpr int kGrowth = 2;
constexpr int kLongestRun = 32;
// Tokens that catching up is expected to serve: as many more as came, and no fewer than these if they are wanted.
constexpr int kShortestHorizon = 64;
constexpr double kTokensOfAStep = 3;  // that a step with a model's drafts commits

double confidence_of(const DraftQuestion& question) {
  constexpr double kUnknown = 0.5;  // of a drafter that does not say
  return question.next_confidence < 0 ? kUnknown : question.next_confidence;
}

}  // namespace

AutoLength::AutoLength(const CostModel& costs, int max_nodes, double min_probability, bool refresh)
    : costs_(costs), max_nodes_(max_nodes), min_probability_(min_probability), refresh_(refresh) {
  reset();
}

void AutoLength::reset() {
  calibration_ = {};
  tokens_ = seconds_ = credit_ = 0;
  steps_since_probe_.fill(kProbeSpacing);
  longest_.fill(0);
  generated_ = 0;
  drafted_ = false;
}

double AutoLength::tokens_a_second() const {
  const double single = costs_.target.seconds(1);
  if (!(single > 0)) return 0;
  constexpr double kPriorSteps = 4;  // of plain decoding
  return std::max(1.0, (tokens_ + kPriorSteps) * single / (seconds_ + kPriorSteps * single)) / single;
}

void AutoLength::begin_step(const DraftBudget& budget) {
  budget_ = budget;
  nodes_[0] = {};
  draft_seconds_ = feed_seconds_ = 0;
  probing_.reset();
}

bool AutoLength::fits(const DraftQuestion& question) const {
  return question.depth <= budget_.max_depth && run_with(question) <= longest_run(question.source) &&
         question.nodes < std::min(max_nodes_, budget_.max_nodes);
}

int AutoLength::parent_of(const DraftQuestion& question) const {
  return question.parent < 0 ? question.nodes - 1 : question.parent;
}

// A draft pass, of which catching up is charged to this step only as far as this step is what it serves.
double AutoLength::amortised_draft_seconds(int feed) const {
  const double step = costs_.draft.seconds(1);
  const double horizon = std::min(std::max(kShortestHorizon, generated_), budget_.max_depth + 1);
  return step + (costs_.draft.seconds(feed) - step) * std::min(1.0, kTokensOfAStep / horizon);
}

// What the draft has read of the prompt depends on the prompts before it, which must not decide about a fixed text.
int AutoLength::feed_of(const DraftQuestion& question) const {
  if (refresh_ || drafted_ || question.partial) return question.feed;
  return std::max(question.feed, budget_.context + question.depth - 1);
}

// Nodes of the question's source in a row, the new one included.
int AutoLength::run_with(const DraftQuestion& question) const {
  const Node& parent = nodes_[static_cast<std::size_t>(parent_of(question))];
  return parent.source == question.source ? parent.run + 1 : 1;
}

int AutoLength::longest_run(DraftSource source) const {
  return kFirstDepth + kGrowth * longest_[static_cast<std::size_t>(source)];
}

bool AutoLength::has_children(const DraftQuestion& question) const {
  return nodes_[static_cast<std::size_t>(parent_of(question))].children > 0;
}

// Draft steps whose candidates are not known yet.
AutoLength::Run AutoLength::run_of_steps(const DraftQuestion& question) const {
  const Node& parent = nodes_[static_cast<std::size_t>(parent_of(question))];
  const int most = std::min({budget_.max_depth - question.depth, longest_run(question.source) - run_with(question),
                             max_nodes_ - question.nodes - 1, budget_.max_nodes - question.nodes - 1}) +
                   1;
  return {parent.reach * parent.left,
          -1,
          amortised_draft_seconds(feed_of(question)),
          costs_.draft.seconds(1),
          question.nodes,
          most,
          question.source};
}

// A known candidate, whose draft step, if it took one, is spent, and what may follow it.
AutoLength::Run AutoLength::run_of(const DraftQuestion& question) const {
  Run run = run_of_steps(question);
  run.first_acceptance = calibration_.acceptance(question.source, has_children(question), confidence_of(question));
  run.first_seconds = 0;
  if (question.source != DraftSource::model) run.next_seconds = 0;
  return run;
}

// Tokens that the best length of the run is expected to add, less what its time is worth. Runs that end at the first
// candidate which does not pay for its own row, and runs that take them all, to use up a step of T(rows).
double AutoLength::best_value(const Run& run) const {
  const auto prospects = calibration_.prospects(run.source);
  return std::max(best_value(run, prospects, true), best_value(run, prospects, false));
}

double AutoLength::best_value(const Run& run, const Calibration::Prospects& prospects, bool selective) const {
  const double lambda = tokens_a_second();
  const int most = std::min(run.most, kLookAhead);
  double best = -std::numeric_limits<double>::infinity(), value = 0;
  double reach = run.reach;  // probability that the newest node is accepted
  double comes = 1;          // probability that the run comes to the node at hand
  for (int i = 0; i < most; ++i) {
    value -= comes * lambda * (i == 0 ? run.first_seconds : run.next_seconds);
    const int nodes = run.nodes + i;
    const double row = lambda * (costs_.target.seconds(nodes + 1) - costs_.target.seconds(nodes));
    if (i == 0 && run.first_acceptance >= 0) {
      reach *= run.first_acceptance;
      value += reach - row;
    } else {
      double taken = 0, accepted = 0;
      for (const Calibration::Prospect& prospect : prospects) {
        if (selective && reach * prospect.acceptance < comes * row) continue;
        taken += prospect.share;
        accepted += prospect.share * prospect.acceptance;
      }
      reach *= accepted;
      value += reach - comes * taken * row;
      comes *= taken;
    }
    best = std::max(best, value);
  }
  return best;
}

// Whether a node that does not seem to pay `seconds` may be tried all the same.
bool AutoLength::probe(const DraftQuestion& question, double seconds) {
  if (question.depth != 1 || has_children(question) || probing_ ||
      steps_since_probe_[static_cast<int>(question.source)] < kProbeSpacing) {
    return false;
  }
  if (seconds > credit_) return false;
  probing_ = question.source;
  return true;
}

bool AutoLength::allow_draft_step(const DraftQuestion& question) {
  if (!fits(question)) return false;
  const double pass = costs_.target.seconds(question.nodes + 1) - costs_.target.seconds(question.nodes);
  const double now = costs_.draft.seconds(feed_of(question));
  if (best_value(run_of_steps(question)) < 0 && !probe(question, now + pass)) return false;
  draft_seconds_ += amortised_draft_seconds(feed_of(question));
  feed_seconds_ += now;
  drafted_ = true;
  return true;
}

bool AutoLength::allow_row(const DraftQuestion& question) {
  if (!fits(question)) return false;
  if (question.next_confidence >= 0 && question.next_confidence < min_probability_) return false;
  if (!has_children(question)) calibration_.ask(question.source, confidence_of(question));
  const Run run = run_of(question);
  const bool probed = question.depth == 1 && probing_ == question.source;
  const double pass = costs_.target.seconds(question.nodes + 1) - costs_.target.seconds(question.nodes);
  if (!probed && best_value(run) < 0 && !probe(question, pass)) return false;
  add_node(question, run.first_acceptance);
  return true;
}

// Reading is not weighed: it is little, and what it tells decides about more.
bool AutoLength::allow_trial(const DraftQuestion& step, int reads) {
  if (!fits(step) || best_value(run_of_steps(step)) < 0) return false;
  feed_seconds_ += costs_.draft.seconds(reads);
  return true;
}

void AutoLength::observe_trial(DraftSource source, double confidence, bool came) {
  calibration_.observe_trial(source, confidence, came);
}

void AutoLength::add_node(const DraftQuestion& question, double acceptance) {
  Node& parent = nodes_[static_cast<std::size_t>(parent_of(question))];
  nodes_[static_cast<std::size_t>(question.nodes)] = {
      parent.reach * parent.left * acceptance, 1, confidence_of(question), 0, question.source, run_with(question)};
  parent.left *= 1 - acceptance;
  ++parent.children;
}

bool AutoLength::prefers(const DraftQuestion& known, const DraftQuestion& step) {
  const double value = best_value(run_of(known));
  return value >= 0 && value >= best_value(run_of_steps(step));
}

void AutoLength::observe(const TokenTree& tree, const Verdict& verdict) {
  std::uint64_t accepted = 0;
  for (const int node : verdict.path()) accepted |= std::uint64_t{1} << node;
  for (int node = 1; node < tree.size(); ++node) {
    if ((verdict.tested >> node & 1) == 0) continue;
    const bool sibling = tree.next_child(tree.parent(node), tree.parent(node)) != node;
    const double confidence = nodes_[static_cast<std::size_t>(node)].confidence;
    calibration_.observe(tree.source(node), sibling, confidence, (accepted >> node & 1) != 0);
  }
  note_runs(tree, verdict);
  const double single = costs_.target.seconds(1);
  const double tokens = 1.0 + verdict.accepted();
  const double seconds = draft_seconds_ + costs_.target.seconds(tree.size());
  tokens_ += tokens - tokens_ / kStepMemory;
  seconds_ += seconds - seconds_ / kStepMemory;
  generated_ += static_cast<int>(tokens);

  for (int& steps : steps_since_probe_) ++steps;
  credit_ += kProbeShare * seconds;
  if (probing_) {
    const double saved = tokens * single - costs_.target.seconds(tree.size()) - feed_seconds_;
    credit_ += saved;
    steps_since_probe_[static_cast<int>(*probing_)] = verdict.accepted() > 0 ? kProbeSpacing : 0;
  }
  credit_ = std::clamp(credit_, 0.0, 2 * (costs_.draft.seconds(2) + costs_.target.seconds(2)));
}

// The longest accepted run of each source, halved where nothing was accepted.
void AutoLength::note_runs(const TokenTree& tree, const Verdict& verdict) {
  const int first = tree.size() > 1 ? static_cast<int>(tree.source(1)) : -1;
  for (const int node : verdict.path().subspan(1)) {
    int& longest = longest_[static_cast<std::size_t>(tree.source(node))];
    longest = std::min(std::max(longest, nodes_[static_cast<std::size_t>(node)].run), kLongestRun);
  }
  if (first >= 0 && verdict.accepted() == 0) longest_[static_cast<std::size_t>(first)] /= 2;
}

void AutoLength::observe_seconds(double propose, double pass, int rows) {
  if (!refresh_) return;
  costs_.target.observe(rows, pass);
  if (feed_seconds_ > 0) costs_.draft.observe_ratio(propose / feed_seconds_);
}

}  // namespace tandem
