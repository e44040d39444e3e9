// A saved cost table of another day: what passes cost by it is off by two, and the clock has to put that right before
// it makes a run slower than plain decoding.
#include <gtest/gtest.h>

#include "draft/auto_length.h"
#include "tests/draft/simulated_text.h"

namespace tandem::test {
namespace {

constexpr int kNodes = 16;
constexpr int kFirstTokens = 64, kTokens = 1500;

struct Stale {
  std::string name;
  double target, draft, row;  // seconds by the table over the true ones: target, draft, and rows beyond the first
};
void PrintTo(const Stale& stale, std::ostream* out) { *out << stale.name; }

Costs stale_costs(const Costs& truth, const Stale& stale) {
  Costs costs = truth;
  const double single = truth.target.front().seconds;
  for (RowSeconds& point : costs.target) {
    point.seconds = stale.target * (single + stale.row * (point.seconds - single));
  }
  costs.draft_step *= stale.draft;
  costs.draft_row *= stale.draft;
  return costs;
}

StepOutcome run(SimulatedText& text, LengthPolicy& policy, const CostModel& truth, int tokens) {
  StepOutcome sum{};
  while (sum.tokens < tokens) {
    const StepOutcome one = text.step(policy);
    const double pass = truth.target.seconds(1 + one.proposed);
    policy.observe_seconds(one.seconds - pass, pass, 1 + one.proposed);
    sum.tokens += one.tokens;
    sum.seconds += one.seconds;
  }
  return sum;
}

class StaleCosts : public ::testing::TestWithParam<Stale> {};

TEST_P(StaleCosts, AreNeverTwoPercentSlowerThanPlainAfterTheFirstTokens) {
  Costs cheap = measured_costs();
  cheap.draft_step = 0.25;
  std::vector<Costs> machines{measured_costs(), cheap};
  // Where a row costs half a pass or more, a slope that is wrong shows only by passes without drafts.
  if (GetParam().row == 1) machines.push_back(steep_costs());
  for (const Costs& truth : machines) {
    for (const auto source : {DraftSource::model, DraftSource::ngram}) {
      for (const double acceptance : {0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95}) {
        for (const double confidence : {acceptance, 0.9}) {
          const CostModel costs = truth.model();
          AutoLength policy(stale_costs(truth, GetParam()).model(), kNodes, 0, true);
          SimulatedText text(truth, {{confidence, acceptance, 1}}, source);
          run(text, policy, costs, kFirstTokens);
          const StepOutcome later = run(text, policy, costs, kTokens);
          EXPECT_LT(later.seconds, 1.02 * later.tokens * costs.target.seconds(1))
              << "draft step " << truth.draft_step << ", acceptance " << acceptance << ", confidence " << confidence
              << (source == DraftSource::ngram ? ", ngram" : ", model");
        }
      }
    }
  }
}

// As much as a table that was right, where a run is long enough to learn.
TEST_P(StaleCosts, GiveWhatTrueOnesGiveInTheEnd) {
  for (const double acceptance : {0.6, 0.8, 0.9}) {
    const Costs truth = measured_costs();
    const CostModel costs = truth.model();
    double seconds[2];
    for (const bool stale : {false, true}) {
      AutoLength policy((stale ? stale_costs(truth, GetParam()) : truth).model(), kNodes, 0, true);
      SimulatedText text(truth, {{acceptance, acceptance, 1}});
      run(text, policy, costs, 1000);
      const StepOutcome later = run(text, policy, costs, 20000);
      seconds[stale] = later.seconds / later.tokens;
    }
    EXPECT_LT(seconds[1], 1.02 * seconds[0]) << acceptance;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, StaleCosts,
                         ::testing::Values(Stale{"all_half", 0.5, 0.5, 1}, Stale{"all_double", 2, 2, 1},
                                           Stale{"target_half", 0.5, 1, 1}, Stale{"target_double", 2, 1, 1},
                                           Stale{"draft_half", 1, 0.5, 1}, Stale{"draft_double", 1, 2, 1},
                                           Stale{"rows_half", 1, 1, 0.5}, Stale{"rows_double", 1, 1, 2},
                                           Stale{"fast_memory", 0.5, 0.5, 2}, Stale{"slow_memory", 2, 2, 0.5},
                                           Stale{"against_one_another", 2, 0.5, 1}, Stale{"the_other_way", 0.5, 2, 1}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tandem::test
