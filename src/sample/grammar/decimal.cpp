#include "src/sample/grammar/decimal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

namespace tandem {
namespace {

void strip_leading_zeros(std::string& digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
}

// |left| against |right|.
int compare_digits(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
  return left.compare(right);
}

std::string plus_one(std::string digits) {
  std::size_t at = digits.size();
  while (at > 0 && digits[at - 1] == '9') digits[--at] = '0';
  if (at == 0) digits.insert(digits.begin(), '0'), at = 1;
  ++digits[at - 1];
  return digits;
}

// Of a number above zero.
std::string minus_one(std::string digits) {
  std::size_t at = digits.size();
  while (digits[at - 1] == '0') digits[--at] = '9';
  --digits[at - 1];
  strip_leading_zeros(digits);
  return digits;
}

Decimal decimal_of_text(std::string_view text) {
  Decimal result;
  result.negative = text.front() == '-';
  if (result.negative) text.remove_prefix(1);
  const std::size_t mark = text.find('e');
  if (mark != std::string_view::npos) {
    std::string_view exponent = text.substr(mark + 1);
    if (exponent.front() == '+') exponent.remove_prefix(1);
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), result.exponent);
    text = text.substr(0, mark);
  }
  result.digits = text;
  const std::size_t point = result.digits.find('.');
  if (point != std::string::npos) {
    result.digits.erase(point, 1);
    result.exponent -= static_cast<int>(result.digits.size() - point);
  }
  strip_leading_zeros(result.digits);
  while (result.digits.size() > 1 && result.digits.back() == '0') {
    result.digits.pop_back();
    ++result.exponent;
  }
  if (result.digits == "0") return {};
  return result;
}

// The whole part of |value| * 10^places, and whether something was left over.
struct Scaled {
  std::string digits = "0";
  bool rest = false;
};

Scaled scaled(const Decimal& value, int places) {
  Scaled result;
  const int shift = value.exponent + places;
  if (value.digits == "0") return result;
  if (shift >= 0) {
    result.digits = value.digits;
    result.digits.append(static_cast<std::size_t>(shift), '0');
    return result;
  }
  const auto cut = static_cast<std::size_t>(-shift);
  if (cut < value.digits.size()) result.digits = value.digits.substr(0, value.digits.size() - cut);
  result.rest = true;  // the last digit is not zero
  return result;
}

WholeNumber signed_number(bool negative, const std::string& digits) {
  WholeNumber number;
  number.negative = negative && digits != "0";
  number.digits = digits;
  return number;
}

}  // namespace

WholeNumber increased(const WholeNumber& number) {
  return number.negative ? signed_number(true, minus_one(number.digits))
                         : signed_number(false, plus_one(number.digits));
}

WholeNumber decreased(const WholeNumber& number) {
  const bool below = number.negative || number.digits == "0";
  return below ? signed_number(true, plus_one(number.digits)) : signed_number(false, minus_one(number.digits));
}

int compare(const WholeNumber& left, const WholeNumber& right) {
  if (left.negative != right.negative) return left.negative ? -1 : 1;
  const int order = compare_digits(left.digits, right.digits);
  return left.negative ? -order : order;
}

int Decimal::whole_digits() const {
  return digits == "0" ? 0 : std::max(0, static_cast<int>(digits.size()) + exponent);
}

Decimal decimal_of(const nlohmann::ordered_json& number) {
  if (!number.is_number_float()) return decimal_of_text(number.dump());
  // From 2^53 the shortest text is not the double's own value, which is what other readers compare whole numbers with.
  if (std::abs(number.get<double>()) >= 9007199254740992.0) {
    return decimal_of_text(fmt::format("{:.0f}", number.get<double>()));
  }
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number.get<double>(), std::chars_format::scientific).ptr;
  return decimal_of_text({text, static_cast<std::size_t>(end - text)});
}

int compare(const Decimal& left, const Decimal& right) {
  if (left.negative != right.negative) return left.negative ? -1 : 1;
  const bool left_zero = left.digits == "0", right_zero = right.digits == "0";
  int order;
  if (left_zero || right_zero) {
    order = static_cast<int>(right_zero) - static_cast<int>(left_zero);
  } else {
    // The powers of ten of the first digits decide, then the digits.
    const int left_top = static_cast<int>(left.digits.size()) + left.exponent;
    const int right_top = static_cast<int>(right.digits.size()) + right.exponent;
    order = left_top != right_top ? left_top - right_top : left.digits.compare(right.digits);
  }
  return left.negative ? -order : order;
}

WholeNumber floor_scaled(const Decimal& value, int places) {
  const Scaled whole = scaled(value, places);
  return signed_number(value.negative, value.negative && whole.rest ? plus_one(whole.digits) : whole.digits);
}

WholeNumber ceiling_scaled(const Decimal& value, int places) {
  const Scaled whole = scaled(value, places);
  return signed_number(value.negative, !value.negative && whole.rest ? plus_one(whole.digits) : whole.digits);
}

}  // namespace tandem
