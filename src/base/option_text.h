// Strict readings of written values, and the wording that errors about them share.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// `text` as a decimal integer of [low, high]; nullopt for anything else. No sign or size wraps, and a leading zero is
// refused because YAML 1.1 reads 010 as 8.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);
std::optional<std::uint64_t> parse_unsigned(std::string_view text, std::uint64_t low, std::uint64_t high);

// `text` as a finite decimal number, with or without point and exponent; nullopt for anything else, a number too large
// or too small for a double and a leading zero before a digit included.
std::optional<double> parse_real(std::string_view text);

// What to add to an error about a number: why a leading zero was refused, or nothing.
std::string number_hint(std::string_view text);

// Finite reals from `low` to `high`, both included unless `above_low`; an infinite end is no limit.
struct RealRange {
  double low;
  double high;
  bool above_low = false;
  bool contains(double value) const;
  std::string text() const;  // e.g. "number 0..1", "number >= 0", "number > 0"
};

// The candidate nearest to `word` by edit distance (a swap of neighbours counts once), when near enough to be a likely
// typo or when `word` begins it; ties go to the first.
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates);

// "a", "a or b", "a, b or c".
std::string joined_choices(const std::vector<std::string>& choices);

}  // namespace tandem
