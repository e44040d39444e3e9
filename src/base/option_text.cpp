#include "src/base/option_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace tandem {
namespace {

// A written number without its sign, and whether it could be taken for octal.
struct WrittenNumber {
  bool negative = false;
  bool leading_zero = false;
  std::string_view digits;
};

WrittenNumber split_sign(std::string_view text) {
  WrittenNumber number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  number.digits = text;
  number.leading_zero = text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
  return number;
}

// The whole of `text` as an unsigned number.
std::optional<std::uint64_t> parse_magnitude(const WrittenNumber& number) {
  std::uint64_t magnitude = 0;
  const char* end = number.digits.data() + number.digits.size();
  const auto [rest, error] = std::from_chars(number.digits.data(), end, magnitude);
  if (error != std::errc() || rest != end || number.leading_zero) return std::nullopt;
  return magnitude;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  constexpr std::uint64_t kLargest = INT64_MAX;
  const WrittenNumber number = split_sign(text);
  const auto magnitude = parse_magnitude(number);
  if (!magnitude || *magnitude > kLargest + (number.negative ? 1 : 0)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(number.negative ? std::uint64_t{0} - *magnitude : *magnitude);
  return value < low || value > high ? std::nullopt : std::optional(value);
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text, std::uint64_t low, std::uint64_t high) {
  const WrittenNumber number = split_sign(text);
  const auto value = parse_magnitude(number);
  if (!value || (number.negative && *value != 0) || *value < low || *value > high) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  const WrittenNumber number = split_sign(text);
  // from_chars also reads a sign of its own, "inf" and "nan".
  if (number.leading_zero || number.digits.starts_with('-')) return std::nullopt;
  double value = 0;
  const char* end = number.digits.data() + number.digits.size();
  const auto [rest, error] = std::from_chars(number.digits.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return number.negative ? -value : value;
}

std::string number_hint(std::string_view text) {
  return split_sign(text).leading_zero ? " (a leading zero could mean octal: write the number without it)" : "";
}

bool RealRange::contains(double value) const {
  return std::isfinite(value) && (above_low ? value > low : value >= low) && value <= high;
}

std::string RealRange::text() const {
  if (std::isinf(low) && std::isinf(high)) return "number";
  if (std::isinf(high)) return fmt::format("number {} {}", above_low ? ">" : ">=", low);
  if (above_low) return fmt::format("number > {} and <= {}", low, high);
  return fmt::format("number {}..{}", low, high);
}

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 64;
  if (word.empty() || word.size() > kLongestName) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    // Rows of the edit-distance table for the last two letters of `word`; two, so that a swap of neighbours is seen.
    std::vector<std::size_t> before, last(candidate.size() + 1), row(candidate.size() + 1);
    for (std::size_t j = 0; j <= candidate.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const bool same = word[i - 1] == candidate[j - 1];
        row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1]) {
          row[j] = std::min(row[j], before[j - 2] + 1);
        }
      }
      before = std::exchange(last, row);
    }
    if (last.back() < best_distance) {
      best_distance = last.back();
      best = candidate;
    }
  }
  if (best || word.size() < 3) return best;
  const auto begun = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const std::string& candidate) { return candidate.starts_with(word); });
  return begun == candidates.end() ? std::nullopt : std::optional(*begun);
}

std::string joined_choices(const std::vector<std::string>& choices) {
  std::string joined;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) joined += i + 1 == choices.size() ? " or " : ", ";
    joined += choices[i];
  }
  return joined;
}

}  // namespace tandem
