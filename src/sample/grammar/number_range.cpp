#include "src/sample/grammar/number_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/sample/grammar/expression.h"

namespace tandem {
namespace {

namespace ex = expressions;

constexpr int kMostWholeDigits = 40;
constexpr int kExactDigits = 15;  // decimals of so many digits are different doubles
constexpr std::int64_t kLargestMultiple = 1000;

Expression digit(int low, int high) {
  return ex::characters({{U'0' + static_cast<char32_t>(low), U'0' + static_cast<char32_t>(high)}});
}

Expression digits(int least, int most) { return ex::repeat(digit(0, 9), least, most); }

bool all(std::string_view text, char wanted) { return text.find_first_not_of(wanted) == std::string_view::npos; }

// The numbers without sign whose digits, written with all their fraction digits and without point, lie between two
// digit texts. Digits are chosen one by one; a prefix is `low` while it equals the lower text's and more than zeros
// follow there, and `high` while it equals the upper text's and more than nines follow; when neither, the rest is free.
class Magnitudes {
 public:
  Magnitudes(int fraction_digits, std::int64_t multiple_of, JsonRules& rules)
      : fraction_(fraction_digits), multiple_(static_cast<int>(multiple_of)), rules_(rules) {}

  Expression between(std::string low, std::optional<std::string> high) {
    pad(low);
    const int least = static_cast<int>(low.size()) - fraction_;  // digits before the point
    if (!high) return ex::choice({of_length(least, low, nines(least)), longer_than(least)});
    pad(*high);
    const int most = static_cast<int>(high->size()) - fraction_;
    std::vector<Expression> lengths;
    for (int length = least; length <= most; ++length) {
      lengths.push_back(
          of_length(length, length == least ? low : power_of_ten(length), length == most ? *high : nines(length)));
    }
    return ex::choice(std::move(lengths));
  }

 private:
  struct Prefix {
    int length;
    bool low, high;
    int remainder;  // of the digits so far by multiple_
  };

  void pad(std::string& text) const {
    const auto wanted = static_cast<std::size_t>(fraction_) + 1;
    if (text.size() < wanted) text.insert(0, wanted - text.size(), '0');
  }

  std::string nines(int whole) const { return std::string(static_cast<std::size_t>(whole + fraction_), '9'); }
  std::string power_of_ten(int whole) const {
    std::string text(static_cast<std::size_t>(whole + fraction_), '0');
    text.front() = '1';
    return text;
  }

  Expression fraction() const {
    if (fraction_ == 0) return ex::literal("");
    return ex::optional(ex::sequence({ex::literal("."), digits(1, fraction_)}));
  }

  // Whole numbers, and what their fractions add, of more than `length` digits.
  Expression longer_than(int length) {
    std::vector<Expression> first;
    for (int value = 1; value <= 9; ++value) {
      if (multiple_ == 1) return ex::sequence({digit(1, 9), digits(length, -1), fraction()});
      first.push_back(ex::sequence({digit(value, value), multiples(length, true, value % multiple_)}));
    }
    return ex::choice(std::move(first));
  }

  Expression of_length(int whole, std::string low, std::string high) {
    whole_ = whole;
    low_ = std::move(low);
    high_ = std::move(high);
    return low_ <= high_ ? rest({0, true, true, 0}) : ex::choice({});
  }

  // What may follow a prefix of fewer than all digits that is neither low nor high.
  Expression free_rest(const Prefix& prefix) {
    if (multiple_ != 1) return multiples(whole_ - prefix.length, false, prefix.remainder);
    if (prefix.length > whole_) return digits(0, whole_ + fraction_ - prefix.length);
    return ex::sequence({digits(whole_ - prefix.length, whole_ - prefix.length), fraction()});
  }

  Expression rest(Prefix prefix) {
    const auto at = static_cast<std::size_t>(prefix.length);
    prefix.low = prefix.low && !all(std::string_view(low_).substr(at), '0');
    prefix.high = prefix.high && !all(std::string_view(high_).substr(at), '9');
    if (prefix.length == whole_ + fraction_) {
      return prefix.remainder == 0 ? ex::literal("") : ex::choice({});
    }
    if (!prefix.low && !prefix.high) return free_rest(prefix);
    Expression more = next_digit(prefix);
    if (prefix.length == whole_) more = ex::sequence({ex::literal("."), std::move(more)});
    const bool may_end = prefix.length >= whole_ && !prefix.low;  // zeros are left out
    return may_end ? ex::optional(std::move(more)) : more;
  }

  Expression next_digit(const Prefix& prefix) {
    const auto at = static_cast<std::size_t>(prefix.length);
    const int first = prefix.low ? low_[at] - '0' : 0, last = prefix.high ? high_[at] - '0' : 9;
    // Digits whose prefixes are alike are one alternative.
    std::vector<std::pair<Prefix, std::pair<int, int>>> groups;
    for (int value = first; value <= last; ++value) {
      Prefix next{prefix.length + 1, prefix.low && value == first, prefix.high && value == last,
                  (prefix.remainder * 10 + value) % multiple_};
      next.low = next.low && !all(std::string_view(low_).substr(at + 1), '0');
      next.high = next.high && !all(std::string_view(high_).substr(at + 1), '9');
      const bool alike = !groups.empty() && groups.back().first.low == next.low &&
                         groups.back().first.high == next.high && groups.back().first.remainder == next.remainder;
      if (alike) {
        groups.back().second.second = value;
      } else {
        groups.push_back({next, {value, value}});
      }
    }
    std::vector<Expression> branches;
    branches.reserve(groups.size());
    for (const auto& [next, values] : groups) {
      branches.push_back(ex::sequence({digit(values.first, values.second), rest(next)}));
    }
    return ex::choice(std::move(branches));
  }

  // `count` digits, or when `more` at least so many, that bring `remainder` to zero.
  Expression multiples(int count, bool more, int remainder) {
    if (count == 0 && !more) return remainder == 0 ? ex::literal("") : ex::choice({});
    const std::string name =
        fmt::format("{}{} digits to a multiple of {} from {}", count, more ? " or more" : "", multiple_, remainder);
    return rules_.shared(name, [=, this] {
      std::vector<Expression> branches;
      for (int value = 0; value <= 9; ++value) {
        branches.push_back(ex::sequence(
            {digit(value, value), multiples(std::max(0, count - 1), more, (remainder * 10 + value) % multiple_)}));
      }
      if (count == 0 && remainder == 0) branches.push_back(ex::literal(""));
      return ex::choice(std::move(branches));
    });
  }

  int fraction_;
  int multiple_;
  JsonRules& rules_;
  int whole_ = 0;
  std::string low_, high_;
};

// A bound above 2^53 moved inwards to a double: a reader may round the number it is compared with.
Decimal inward_double(const Decimal& bound, bool upper) {
  if (bound.whole_digits() <= kExactDigits || !bound.is_whole()) return bound;
  const std::string digits = bound.digits + std::string(static_cast<std::size_t>(bound.exponent), '0');
  double value = std::strtod((bound.negative ? "-" + digits : digits).c_str(), nullptr);
  Decimal rounded = decimal_of(value);
  if (upper ? compare(rounded, bound) > 0 : compare(rounded, bound) < 0) {
    value = std::nextafter(value, upper ? -HUGE_VAL : HUGE_VAL);
    rounded = decimal_of(value);
  }
  return rounded;
}

void check_bound(const NumberBound& bound, bool whole, const std::string& place) {
  const int digits = bound.value.whole_digits();
  if (digits > kMostWholeDigits) {
    fail(ErrorKind::config, "{}: a bound of {} digits before its point; at most {}", place, digits, kMostWholeDigits);
  }
  if (bound.exclusive && !whole && digits > kExactDigits) {
    fail(ErrorKind::config, "{}: an exclusive bound of {} digits before its point is not exact; at most {}", place,
         digits, kExactDigits);
  }
}

int fraction_digits(const NumberRange& range) {
  int places = kExactDigits;
  for (const auto& bound : {range.minimum, range.maximum}) {
    if (bound && bound->exclusive) places = std::min(places, kExactDigits - bound->value.whole_digits());
  }
  return places;
}

// The bounds in units of 10^-places, both included.
std::optional<WholeNumber> lowest(const NumberRange& range, int places) {
  if (!range.minimum) return std::nullopt;
  const Decimal value = range.whole ? range.minimum->value : inward_double(range.minimum->value, false);
  const WholeNumber ceiling = ceiling_scaled(value, places);
  const bool reached = compare(ceiling, floor_scaled(value, places)) == 0;
  return range.minimum->exclusive && reached ? increased(ceiling) : ceiling;
}

std::optional<WholeNumber> highest(const NumberRange& range, int places) {
  if (!range.maximum) return std::nullopt;
  const Decimal value = range.whole ? range.maximum->value : inward_double(range.maximum->value, true);
  const WholeNumber floor = floor_scaled(value, places);
  const bool reached = compare(floor, ceiling_scaled(value, places)) == 0;
  return range.maximum->exclusive && reached ? decreased(floor) : floor;
}

}  // namespace

Expression number_in(NumberRange range, JsonRules& rules, const std::string& place) {
  range.whole = range.whole || range.multiple_of != 1;
  if (range.multiple_of > kLargestMultiple) {
    fail(ErrorKind::config, "{}: multipleOf {}: at most {} is supported", place, range.multiple_of, kLargestMultiple);
  }
  for (const auto& bound : {range.minimum, range.maximum}) {
    if (bound) check_bound(*bound, range.whole, place);
  }
  if (!range.minimum && !range.maximum && range.multiple_of == 1) {
    return range.whole ? rules.integer() : rules.number();
  }
  const int places = range.whole ? 0 : fraction_digits(range);
  const std::optional<WholeNumber> low = lowest(range, places), high = highest(range, places);
  if (low && high && compare(*low, *high) > 0) return ex::choice({});
  Magnitudes magnitudes(places, range.multiple_of, rules);
  std::vector<Expression> signs;
  if (!high || !high->negative) {
    const std::string from = low && !low->negative ? low->digits : "0";
    signs.push_back(magnitudes.between(from, high ? std::optional(high->digits) : std::nullopt));
  }
  if (!low || low->negative) {
    // "-0" is a number's spelling of zero, but no whole number's.
    const std::string from = high && high->negative ? high->digits : range.whole ? "1" : "0";
    signs.push_back(
        ex::sequence({ex::literal("-"), magnitudes.between(from, low ? std::optional(low->digits) : std::nullopt)}));
  }
  return ex::choice(std::move(signs));
}

}  // namespace tandem
