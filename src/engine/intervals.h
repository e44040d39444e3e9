// How far measured rates can be trusted: intervals that hold the true value 95 times in 100.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace tandem {

struct Interval {
  double low, high;
};

// Of a chance that came true `successes` times in `trials` independent trials: Wilson's score interval (1927), which
// stays within [0, 1] and is sensible for few trials. Nothing without trials.
std::optional<Interval> wilson_interval(std::int64_t successes, std::int64_t trials);

struct Share {
  double part, whole;
};

// Of sum(part) / sum(whole) over groups that differ among themselves, e.g. prompts: the bootstrap's percentiles over
// groups drawn with replacement (Efron 1979), the same for the same input. Nothing for fewer than two groups with a
// positive whole.
std::optional<Interval> bootstrap_interval(std::span<const Share> groups);

}  // namespace tandem
