#include <cmath>

#include "src/text/jinja/compare.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/text_tools.h"

namespace tandem::jinja {
namespace {

constexpr const char* symbol(BinaryOp op) {
  constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<int>(op)];
}

[[noreturn]] void refuse(BinaryOp op, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (const Undefined* missing = value->as<Undefined>())
      wrong("{}", missing->why ? *missing->why : "a value is undefined");
    if (value->is<Markup>()) unsupported("using what safe or escape returned in an operation is not supported");
  }
  wrong("{} does not take {} and {}", symbol(op), type_name(left), type_name(right));
}

void require_divisor(bool zero) {
  if (zero) wrong("division by zero");
}

void require_no_overflow(bool overflow) {
  if (overflow) unsupported("expected integers below 2^63");
}

std::int64_t power_of(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) require_no_overflow(__builtin_mul_overflow(result, base, &result));
    if (exponent > 1) require_no_overflow(__builtin_mul_overflow(base, base, &base));
  }
  return result;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  require_divisor(b == 0);
  if (b == -1) {
    require_no_overflow(a == INT64_MIN);
    return -a;
  }
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

Value integers(BinaryOp op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case BinaryOp::add:
      require_no_overflow(__builtin_add_overflow(a, b, &result));
      return Value(result);
    case BinaryOp::subtract:
      require_no_overflow(__builtin_sub_overflow(a, b, &result));
      return Value(result);
    case BinaryOp::multiply:
      require_no_overflow(__builtin_mul_overflow(a, b, &result));
      return Value(result);
    case BinaryOp::divide:
      require_divisor(b == 0);
      if (std::abs(static_cast<double>(a)) > 0x1p53 || std::abs(static_cast<double>(b)) > 0x1p53) {
        unsupported("dividing integers beyond 2^53 is not supported");
      }
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::floor_divide:
      return Value(floor_divide(a, b));
    case BinaryOp::modulo: {
      const std::int64_t quotient = floor_divide(a, b);
      return Value(a - quotient * b);
    }
    case BinaryOp::power:
      if (b >= 0) return Value(power_of(a, b));
      require_divisor(a == 0);
      return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
  return Value();
}

Value reals(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return Value(a + b);
    case BinaryOp::subtract:
      return Value(a - b);
    case BinaryOp::multiply:
      return Value(a * b);
    case BinaryOp::divide:
      require_divisor(b == 0);
      return Value(a / b);
    case BinaryOp::floor_divide:
    case BinaryOp::modulo: {
      require_divisor(b == 0);
      double rest = std::fmod(a, b);
      if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
      if (rest == 0) rest = std::copysign(0.0, b);
      if (op == BinaryOp::modulo) return Value(rest);
      return Value(std::floor((a - rest) / b + 0.5));
    }
    case BinaryOp::power: {
      const double result = std::pow(a, b);
      if (std::isnan(result) || (std::isinf(result) && !std::isinf(a) && !std::isinf(b))) {
        wrong("{} ** {} is no number", a, b);
      }
      return Value(result);
    }
  }
  return Value();
}

Value repeated(Runtime& runtime, const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (const MarkedText* text = value.text()) {
    if (text->empty()) return value;
    if (times > runtime.limits().text_bytes / text->size()) unsupported("a text is repeated too often");
    MarkedText out;
    for (std::size_t i = 0; i < times; ++i) out.append(*text);
    return runtime.text(std::move(out));
  }
  const Sequence& sequence = *value.sequence();
  if (sequence.kind != SequenceKind::list && sequence.kind != SequenceKind::tuple) {
    refuse(BinaryOp::multiply, value, Value(count));
  }
  if (!sequence.items.empty() && times > runtime.limits().steps / sequence.items.size()) {
    unsupported("a list is repeated too often");
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < times; ++i) items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return runtime.list(std::move(items), sequence.kind);
}

// Markup + text and text + Markup escape the text.
Value joined_markup(Runtime& runtime, const Value& left, const Value& right) {
  MarkedText out;
  for (const Value* part : {&left, &right})
    out.append(part->is<Markup>() ? runtime.to_text(*part) : escaped(*part->text()));
  return markup(runtime, std::move(out));
}

Value joined_lists(Runtime& runtime, const Sequence& left, const Sequence& right) {
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return runtime.list(std::move(items), left.kind);
}

}  // namespace

Value binary(Runtime& runtime, BinaryOp op, const Value& left, const Value& right) {
  if (is_integer(left) && is_integer(right)) return integers(op, integer_of(left), integer_of(right));
  if (is_number(left) && is_number(right)) return reals(op, number_of(left), number_of(right));
  if (op == BinaryOp::add && left.text() != nullptr && right.text() != nullptr) {
    MarkedText out = *left.text();
    out.append(*right.text());
    return runtime.text(std::move(out));
  }
  const auto textual = [](const Value& value) { return value.is<Markup>() || value.text() != nullptr; };
  if (op == BinaryOp::add && textual(left) && textual(right)) return joined_markup(runtime, left, right);
  const Sequence *a = left.sequence(), *b = right.sequence();
  const bool lists = a != nullptr && b != nullptr && a->kind == b->kind &&
                     (a->kind == SequenceKind::list || a->kind == SequenceKind::tuple);
  if (op == BinaryOp::add && lists) return joined_lists(runtime, *a, *b);
  if (op == BinaryOp::multiply) {
    if ((a != nullptr || left.text() != nullptr) && is_integer(right))
      return repeated(runtime, left, integer_of(right));
    if ((b != nullptr || right.text() != nullptr) && is_integer(left))
      return repeated(runtime, right, integer_of(left));
  }
  if (op == BinaryOp::modulo && left.text() != nullptr) unsupported("formatting a text with % is not supported");
  refuse(op, left, right);
}

Value negative(const Value& value) {
  if (const double* real = value.as<double>()) return Value(-*real);
  if (!is_integer(value)) wrong("- does not take {}", type_name(value));
  require_no_overflow(integer_of(value) == INT64_MIN);
  return Value(-integer_of(value));
}

bool compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right) {
  if (op == CompareOp::in || op == CompareOp::not_in) {
    runtime.spend(weight_of(right));
    return contains(runtime, right, left) == (op == CompareOp::in);
  }
  runtime.spend(std::min(weight_of(left), weight_of(right)));
  if (op == CompareOp::equal) return equal(left, right);
  if (op == CompareOp::unequal) return !equal(left, right);
  const int sign = order(left, right);
  switch (op) {
    case CompareOp::less:
      return sign == -1;
    case CompareOp::less_equal:
      return sign == -1 || sign == 0;
    case CompareOp::greater:
      return sign == 1;
    default:
      return sign == 1 || sign == 0;
  }
}

}  // namespace tandem::jinja
