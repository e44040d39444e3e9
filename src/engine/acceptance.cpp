#include "src/engine/acceptance.h"

#include <algorithm>

#include "verify/node_state.h"
#include "verify/walk.h"

namespace tandem {
namespace {

// Sum over all tokens of the smaller of the two.
double overlap(const Distribution& p, const Distribution& q) {
  double sum = 0;
  for (std::size_t i = 0, j = 0; i < p.size() && j < q.size();) {
    if (p.tokens[i] == q.tokens[j]) {
      sum += std::min(p.probabilities[i++], q.probabilities[j++]);
    } else {
      ++(p.tokens[i] < q.tokens[j] ? i : j);
    }
  }
  return std::min(sum, 1.0);
}

// The likeliest token, ties to the lowest id.
TokenId top_of(const Distribution& p) {
  const auto best = std::max_element(p.probabilities.begin(), p.probabilities.end());
  return p.tokens[static_cast<std::size_t>(best - p.probabilities.begin())];
}

void add(PositionCounts& to, const PositionCounts& other) {
  to.room += other.room;
  to.drafted += other.drafted;
  to.tested += other.tested;
  to.accepted += other.accepted;
  to.passes += other.passes;
}

void add(BinCounts& to, const BinCounts& other) {
  to.tested += other.tested;
  to.accepted += other.accepted;
  to.confidence += other.confidence;
}

void add(ExpectedCounts& to, const ExpectedCounts& other) {
  to.tested += other.tested;
  to.accepted += other.accepted;
  to.expected += other.expected;
  to.variance += other.variance;
}

// One step at hand.
class StepCounter {
 public:
  StepCounter(Engine& engine, Context& before, const StepNotes& notes, AcceptanceCounts& counts)
      : engine_(engine),
        tree_(engine.last_tree()),
        verdict_(engine.last_verdict()),
        before_(before),
        notes_(notes),
        counts_(counts) {}

  void count() {
    count_places();
    count_bins();
    for (const int feed : notes_.feeds) {
      if (feed > 1) ++counts_.catch_up[feed];
    }
    const std::span<const int> path = verdict_.path();
    Walk walk(tree_, before_);
    for (std::size_t i = 0; i < path.size(); ++i) {
      const int child = tree_.next_child(path[i], path[i]);
      if (child < 0 || !tested(child)) return;
      PositionCounts& place = counts_.positions[i];
      ++place.tested;
      place.accepted += i + 1 < path.size();
      walk.go_to(path[i]);
      engine_.sampler().distribution(engine_.last_logits().row(path[i]), before_, p_);
      count_top(path[i], child);
      count_expected(path[i], i + 1 < path.size() ? path[i + 1] : -1);
    }
  }

 private:
  bool tested(int node) const { return (verdict_.tested >> node & 1) != 0; }

  void count_places() {
    std::array<int, kMaxTreeNodes> nodes{};  // by depth
    for (int node = 1; node < tree_.size(); ++node) ++nodes[static_cast<std::size_t>(tree_.depth(node))];
    int rows = 1;
    for (int depth = 0; depth <= std::min(notes_.room, kMaxTreeNodes - 1); ++depth) {
      rows += nodes[static_cast<std::size_t>(depth)];
      ++counts_.steps_by_length_and_rows[static_cast<std::size_t>(depth)][static_cast<std::size_t>(rows)];
      if (depth == 0) continue;
      PositionCounts& place = counts_.positions[static_cast<std::size_t>(depth) - 1];
      ++place.room;
      place.drafted += nodes[static_cast<std::size_t>(depth)] > 0;
      place.passes += notes_.passes[static_cast<std::size_t>(depth) - 1];
    }
  }

  void count_bins() {
    std::uint64_t kept = 0;
    for (const int node : verdict_.path()) kept |= std::uint64_t{1} << node;
    for (int node = 1; node < tree_.size(); ++node) {
      if (!tested(node)) continue;
      const double noted = notes_.confidence[static_cast<std::size_t>(node)];
      const double confidence = noted < 0 ? tree_.confidence(node) : noted;
      BinCounts& bin =
          counts_
              .bins[static_cast<std::size_t>(tree_.source(node))][static_cast<std::size_t>(confidence_bin(confidence))];
      ++bin.tested;
      bin.accepted += static_cast<std::int64_t>(kept >> node & 1);
      bin.confidence += confidence;
    }
  }

  void count_top(int parent, int child) {
    const Distribution* q = tree_.proposal(parent);
    const bool drawn = tree_.kind(child) == ChildKind::sampled && q != nullptr;
    ++counts_.compared;
    counts_.same_top += (drawn ? top_of(*q) : tree_.token(child)) == top_of(p_);
  }

  // The children of a node in the order of their tests; the accepted one, if any, is the last that was tested.
  void count_expected(int parent, int accepted) {
    const Distribution* proposal = tree_.proposal(parent);
    q_ = proposal != nullptr ? *proposal : Distribution{};
    state_.begin(p_, proposal);
    for (int child = tree_.next_child(parent, parent); child >= 0 && tested(child);
         child = tree_.next_child(parent, child)) {
      const ChildKind kind = tree_.kind(child);
      const bool sampled = kind == ChildKind::sampled;
      const double expected =
          sampled ? overlap(state_.residual(), q_) : state_.accept_probability(tree_.token(child), kind);
      ExpectedCounts& counts = sampled ? counts_.sampled : counts_.deterministic;
      ++counts.tested;
      counts.accepted += child == accepted;
      counts.expected += expected;
      counts.variance += expected * (1 - expected);
      if (child == accepted) return;
      state_.reject(tree_.token(child), kind);
      q_.remove(tree_.token(child));
    }
  }

  Engine& engine_;
  const TokenTree& tree_;
  const Verdict& verdict_;
  Context& before_;
  const StepNotes& notes_;
  AcceptanceCounts& counts_;
  Distribution p_, q_;
  NodeState state_;
};

}  // namespace

int confidence_bin(double confidence) {
  return static_cast<int>(std::upper_bound(kConfidenceBorders.begin(), kConfidenceBorders.end(), confidence) -
                          kConfidenceBorders.begin());
}

void AcceptanceCounts::add(const AcceptanceCounts& other) {
  metrics.add(other.metrics);
  answers += other.answers;
  for (std::size_t i = 0; i < positions.size(); ++i) tandem::add(positions[i], other.positions[i]);
  for (std::size_t source = 0; source < bins.size(); ++source) {
    for (std::size_t i = 0; i < bins[source].size(); ++i) tandem::add(bins[source][i], other.bins[source][i]);
  }
  tandem::add(sampled, other.sampled);
  tandem::add(deterministic, other.deterministic);
  for (const auto& [feed, passes] : other.catch_up) catch_up[feed] += passes;
  compared += other.compared;
  same_top += other.same_top;
  for (std::size_t length = 0; length < steps_by_length_and_rows.size(); ++length) {
    for (std::size_t rows = 0; rows < steps_by_length_and_rows[length].size(); ++rows) {
      steps_by_length_and_rows[length][rows] += other.steps_by_length_and_rows[length][rows];
    }
  }
}

void NotingPolicy::begin_step(const DraftBudget& budget) {
  notes_.room = std::max(0, std::min(budget.max_depth, budget.max_nodes - 1));
  notes_.confidence.fill(-1);
  notes_.passes.fill(0);
  notes_.feeds.clear();
  policy_->begin_step(budget);
}

bool NotingPolicy::allow_draft_step(const DraftQuestion& question) {
  if (!policy_->allow_draft_step(question)) return false;
  ++notes_.passes[static_cast<std::size_t>(question.depth) - 1];
  notes_.feeds.push_back(question.feed);
  return true;
}

bool NotingPolicy::allow_row(const DraftQuestion& question) {
  if (!policy_->allow_row(question)) return false;
  notes_.confidence[static_cast<std::size_t>(question.nodes)] = question.next_confidence;
  return true;
}

void count_step(Engine& engine, Context& before, const StepNotes& notes, AcceptanceCounts& counts) {
  StepCounter(engine, before, notes, counts).count();
}

MeasuredAnswer measure_acceptance(const Session& session, EngineChoice choice, std::span<const TokenId> prompt,
                                  StopRules rules) {
  StepNotes notes;
  // Room for the answer, and for a tree at its end: the context is no other than the session's to it.
  const auto wanted = static_cast<std::int64_t>(prompt.size()) + rules.max_tokens + kMaxTreeNodes;
  choice.context = static_cast<int>(std::min<std::int64_t>(choice.context, wanted));
  choice.wrap_policy = [&notes](std::unique_ptr<LengthPolicy> policy) {
    return std::make_unique<NotingPolicy>(std::move(policy), notes);
  };
  Engine engine = session.make_engine(std::move(choice));
  Generation generation(engine, session.tokenizer(), prompt, std::move(rules));
  MeasuredAnswer answer;
  Context before;
  for (bool more = true; more;) {
    before = engine.context();
    const std::int64_t steps = engine.metrics().steps;
    more = generation.advance();
    if (engine.metrics().steps > steps) count_step(engine, before, notes, answer.counts);
    if (std::string warning = engine.drafter().take_warning(); !warning.empty()) answer.warning = std::move(warning);
  }
  answer.result = generation.result();
  answer.counts.metrics = answer.result.metrics;
  answer.counts.answers = 1;
  return answer;
}

}  // namespace tandem
