// Exact decimal numbers, for the bounds of number ranges.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace tandem {

// A whole number of any size: an optional minus sign and digits without leading zeros; zero has no sign.
struct WholeNumber {
  bool negative = false;
  std::string digits = "0";
};

// number + 1 or number - 1.
WholeNumber increased(const WholeNumber& number);
WholeNumber decreased(const WholeNumber& number);

// < 0, 0 or > 0 as `left` is below, equal to or above `right`.
int compare(const WholeNumber& left, const WholeNumber& right);

// (-1)^negative * digits * 10^exponent.
struct Decimal {
  bool negative = false;
  std::string digits = "0";  // without leading zeros, and without trailing ones unless it is "0"
  int exponent = 0;

  // Number of digits before the point; 0 below 1.
  int whole_digits() const;
  // Whether nothing stands behind the point.
  bool is_whole() const { return exponent >= 0; }
};

// A whole number as it is; a double below 2^53 as the shortest text that reads as it, above as the whole number it is.
Decimal decimal_of(const nlohmann::ordered_json& number);

// < 0, 0 or > 0 as `left` is below, equal to or above `right`.
int compare(const Decimal& left, const Decimal& right);

// The largest whole number at or below value * 10^places, or the smallest at or above it.
WholeNumber floor_scaled(const Decimal& value, int places);
WholeNumber ceiling_scaled(const Decimal& value, int places);

}  // namespace tandem
