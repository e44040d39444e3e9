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
  double seconds = 0;     // of a step: draft passes, the target's pass, sampling
  double speed = 1;       // over plain decoding
  double break_even = 0;  // acceptance of a draft at which the speed is 1; infinite: none is enough
};

// What each length would bring, by the acceptance that was counted at each place of the proposals and the costs of
// passes: the draft's passes at the cost of one row (its reading of the prompt is not in it), the target's at that of
// the rows that these proposals would have had, and what the draws took. From length 0, which is plain decoding, to the
// deepest place at which a draft was tested. Lengths beyond what was drafted are never guessed.
std::vector<LengthForecast> forecast_lengths(const AcceptanceCounts& counts, const CostModel& costs);

// The fastest; the shorter one of equals.
const LengthForecast& best_of(const std::vector<LengthForecast>& forecasts);

// The speed over plain decoding that the steps counted had: their own times against one row of the costs.
double measured_speed(const AcceptanceCounts& counts, const CostModel& costs);

}  // namespace tandem
