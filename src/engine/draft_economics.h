// What drafting a fixed number of tokens is worth: expected tokens of a step against its time.
#pragma once
#include <vector>

#include "draft/cost_model.h"
#include "src/engine/acceptance.h"

namespace tandem {

// Expected tokens of a step whose `length` drafts in a row are each accepted with probability `a`, given that those
// before it were: (1 - a^(length + 1)) / (1 - a) (Leviathan et al. 2022).
double expected_tokens(double a, double length);

// The acceptance `a` at which such a step, which costs as much as `cost` plain tokens, is as fast as plain decoding;
// infinite where accepting all of them is not enough.
double break_even(double cost, double length);

// Steps that draft up to `length` tokens in a row.
struct LengthForecast {
  int length = 0;
  double tokens = 1;      // expected of a step
  double seconds = 0;     // of a step: draft passes, the target's pass, draws, its share of what the draft reads
  double speed = 1;       // over plain decoding
  double break_even = 0;  // acceptance of a draft at which the speed is 1; infinite: none is enough
};

// What each length would bring, by the acceptance that was counted at each place of the proposals and the costs of
// passes: the draft's at the cost of one row, the target's at that of the rows that these proposals would have had,
// what the draws took, and what the draft read beyond a token a pass (prompts, and catching up), spread over all tokens
// as it was. From length 0, which is plain decoding, to the deepest place at which a draft was tested: lengths beyond
// what was drafted are never guessed.
std::vector<LengthForecast> forecast_lengths(const AcceptanceCounts& counts, const CostModel& costs);

// The fastest; the shorter one of equals.
const LengthForecast& best_of(const std::vector<LengthForecast>& forecasts);

// What the steps counted took by their own clock.
struct MeasuredSteps {
  double seconds = 0;  // of a step
  double speed = 1;    // over plain decoding at the cost of passes of one row
};
MeasuredSteps measured_steps(const AcceptanceCounts& counts, const CostModel& costs);

}  // namespace tandem
