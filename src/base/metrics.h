// What one generation did and how long it took: plain counts and seconds, no behaviour beyond adding up.
#pragma once
#include <array>
#include <cstdint>

#include "src/base/token_tree.h"

namespace tandem {

// Drafted nodes by what became of them. Tested: acceptance was decided (on a chain up to and including the first
// rejection). Each is counted for itself: proposed = tested + untested, and tested = accepted + rejected.
struct DraftCounts {
  std::int64_t proposed = 0, tested = 0, accepted = 0, rejected = 0, untested = 0;

  void count(bool was_tested, bool kept) {
    ++proposed;
    tested += was_tested;
    accepted += kept;
    rejected += was_tested && !kept;
    untested += !was_tested && !kept;
  }
  void add(const DraftCounts& other) {
    proposed += other.proposed;
    tested += other.tested;
    accepted += other.accepted;
    rejected += other.rejected;
    untested += other.untested;
  }
};

struct StageSeconds {
  double prefill = 0;   // the target's pass over the prompt
  double draft = 0;     // proposing, catch-up and the draft's own prefill included
  double verify = 0;    // the target's passes over proposals
  double sample = 0;    // distributions, draws and acceptance
  double rollback = 0;  // keep_path and truncate
};

struct Metrics {
  std::int64_t steps = 0;
  std::int64_t generated = 0;  // = 1 + accepted + steps - cut; an end id counts
  std::int64_t cut = 0;        // committed tokens dropped after a stop
  DraftCounts total;
  std::array<DraftCounts, kMaxTreeNodes> by_depth{};  // index = depth - 1
  std::array<DraftCounts, kDraftSources> by_source{};
  std::array<std::int64_t, kMaxTreeNodes + 1> steps_by_rows{};  // passes of the target with this many rows
  std::array<double, kMaxTreeNodes + 1> seconds_by_rows{};      // time they took together
  StageSeconds seconds;

  // Counts one verified proposal.
  void record(const TokenTree& tree, const Verdict& verdict) {
    ++steps;
    std::uint64_t accepted = 0;
    for (const int node : verdict.path()) accepted |= std::uint64_t{1} << node;
    for (int node = 1; node < tree.size(); ++node) {
      const bool tested = verdict.tested >> node & 1, kept = accepted >> node & 1;
      for (DraftCounts* counts :
           {&total, &by_depth[tree.depth(node) - 1], &by_source[static_cast<int>(tree.source(node))]}) {
        counts->count(tested, kept);
      }
    }
  }

  // Adds another answer's figures, for totals; load time is not summed.
  void add(const Metrics& other) {
    steps += other.steps;
    generated += other.generated;
    cut += other.cut;
    total.add(other.total);
    for (std::size_t i = 0; i < by_depth.size(); ++i) by_depth[i].add(other.by_depth[i]);
    for (std::size_t i = 0; i < by_source.size(); ++i) by_source[i].add(other.by_source[i]);
    for (std::size_t i = 0; i < steps_by_rows.size(); ++i) {
      steps_by_rows[i] += other.steps_by_rows[i];
      seconds_by_rows[i] += other.seconds_by_rows[i];
    }
    seconds.prefill += other.seconds.prefill;
    seconds.draft += other.seconds.draft;
    seconds.verify += other.seconds.verify;
    seconds.sample += other.seconds.sample;
    seconds.rollback += other.seconds.rollback;
  }
};

}  // namespace tandem
