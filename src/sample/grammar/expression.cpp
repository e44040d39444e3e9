#include "src/sample/grammar/expression.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "src/text/utf8.h"

namespace tandem {
namespace expressions {

using Kind = Expression::Kind;

Expression literal(std::string bytes) {
  Expression result;
  result.bytes = std::move(bytes);
  return result;
}

Expression characters(CodePoints ranges) {
  Expression result;
  result.kind = Kind::characters;
  result.ranges = std::move(ranges);
  return result;
}

Expression rule(int index) {
  Expression result;
  result.kind = Kind::rule;
  result.rule = index;
  return result;
}

Expression sequence(std::vector<Expression> parts) {
  Expression result;
  result.kind = Kind::sequence;
  const auto add = [&](Expression&& part) {
    if (part.kind == Kind::literal && part.bytes.empty()) return;
    if (part.kind == Kind::literal && !result.parts.empty() && result.parts.back().kind == Kind::literal) {
      result.parts.back().bytes += part.bytes;
    } else {
      result.parts.push_back(std::move(part));
    }
  };
  for (Expression& part : parts) {
    if (part.kind == Kind::sequence) {
      for (Expression& inner : part.parts) add(std::move(inner));
    } else {
      add(std::move(part));
    }
  }
  if (result.parts.empty()) return literal("");
  if (result.parts.size() == 1) {
    Expression only = std::move(result.parts.front());
    return only;
  }
  return result;
}

Expression choice(std::vector<Expression> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  Expression result;
  result.kind = Kind::choice;
  result.parts = std::move(parts);
  return result;
}

Expression repeat(Expression body, int least, int most) {
  if (most == 0) return literal("");
  if (least == 1 && most == 1) return body;
  Expression result;
  result.kind = Kind::repeat;
  result.least = least;
  result.most = most;
  result.parts.push_back(std::move(body));
  return result;
}

Expression optional(Expression body) { return repeat(std::move(body), 0, 1); }

}  // namespace expressions

namespace {

using Kind = Expression::Kind;

constexpr std::int64_t kManyNodes = std::int64_t{1} << 62;

std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  return a != 0 && b > kManyNodes / a ? kManyNodes : a * b;
}
std::int64_t capped_sum(std::int64_t a, std::int64_t b) { return std::min(kManyNodes, a + b); }

// The most of a length, where -1 stands for no limit.
std::int64_t most_sum(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 ? -1 : capped_sum(a, b); }

std::int64_t code_point_count(std::string_view text) {
  std::int64_t count = 0;
  for (; !text.empty(); text.remove_prefix(utf8_step(text).length)) ++count;
  return count;
}

TextLength repeat_length(const Expression& repeat, TextLength body) {
  const std::int64_t least = capped_product(body.least, repeat.least);
  if (body.most == 0 || repeat.most == 0) return {least, 0};
  if (body.most < 0 || repeat.most < 0) return {least, -1};
  return {least, capped_product(body.most, repeat.most)};
}

bool within(TextLength inner, TextLength outer) {
  return inner.least >= outer.least && (outer.most < 0 || (inner.most >= 0 && inner.most <= outer.most));
}

bool apart(TextLength a, TextLength b) {
  return (b.most >= 0 && a.least > b.most) || (a.most >= 0 && b.least > a.most);
}

// `repeat`, whose body always matches `body` code points, narrowed to `length`.
void limit_repeat(Expression& repeat, std::int64_t body, TextLength length) {
  const std::int64_t least = std::max<std::int64_t>(repeat.least, (length.least + body - 1) / body);
  std::int64_t most = repeat.most;
  if (length.most >= 0) most = most < 0 ? length.most / body : std::min(most, length.most / body);
  repeat.least = static_cast<int>(least);
  repeat.most = static_cast<int>(most);
  if (most >= 0 && least > most) repeat = expressions::choice({});
}

// A sequence in which all parts but one have a fixed length.
bool limit_sequence(Expression& sequence, TextLength length) {
  Expression* open = nullptr;
  std::int64_t fixed = 0;
  for (Expression& part : sequence.parts) {
    const TextLength own = text_length(part);
    if (own.least == own.most) {
      fixed += own.least;
    } else if (open != nullptr) {
      return false;
    } else {
      open = &part;
    }
  }
  const TextLength rest{std::max<std::int64_t>(0, length.least - fixed), length.most < 0 ? -1 : length.most - fixed};
  if (open == nullptr || !limit_length(*open, rest)) return false;
  if (is_nothing(*open)) sequence = expressions::choice({});
  return true;
}

}  // namespace

bool is_nothing(const Expression& expression) { return expression.kind == Kind::choice && expression.parts.empty(); }

std::int64_t expanded_size(const Expression& expression) {
  std::int64_t size = 1 + static_cast<std::int64_t>(expression.bytes.size() + expression.ranges.size());
  for (const Expression& part : expression.parts) size = capped_sum(size, expanded_size(part));
  const int times = std::max({1, expression.least, expression.most});
  return expression.kind == Kind::repeat ? capped_product(size, times) : size;
}

TextLength text_length(const Expression& expression) {
  switch (expression.kind) {
    case Kind::literal: {
      const std::int64_t count = code_point_count(expression.bytes);
      return {count, count};
    }
    case Kind::sequence: {
      TextLength total{0, 0};
      for (const Expression& part : expression.parts) {
        const TextLength own = text_length(part);
        total = {capped_sum(total.least, own.least), most_sum(total.most, own.most)};
      }
      return total;
    }
    case Kind::choice: {
      std::optional<TextLength> total;
      for (const Expression& part : expression.parts) {
        const TextLength own = text_length(part);
        if (!total) total = own;
        total->least = std::min(total->least, own.least);
        total->most = total->most < 0 || own.most < 0 ? -1 : std::max(total->most, own.most);
      }
      return total.value_or(TextLength{0, 0});
    }
    case Kind::repeat:
      return repeat_length(expression, text_length(expression.parts[0]));
    case Kind::characters:
    case Kind::rule:
      break;  // a rule's length is not asked for
  }
  return {1, 1};
}

bool limit_length(Expression& expression, TextLength length) {
  const TextLength own = text_length(expression);
  if (within(own, length)) return true;
  if (apart(own, length)) {
    expression = expressions::choice({});
    return true;
  }
  if (expression.kind == Kind::choice) {
    for (Expression& part : expression.parts) {
      if (!limit_length(part, length)) return false;
    }
    std::erase_if(expression.parts, is_nothing);
    return true;
  }
  if (expression.kind == Kind::sequence) return limit_sequence(expression, length);
  if (expression.kind != Kind::repeat) return false;
  const TextLength body = text_length(expression.parts[0]);
  if (body.least != body.most || body.least == 0) return false;
  limit_repeat(expression, body.least, length);
  return true;
}

}  // namespace tandem
