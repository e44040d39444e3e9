// The interpreter's expressions.
#include <algorithm>

#include "src/text/jinja/filters.h"
#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/tests.h"

namespace tandem::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  if (depth_ >= runtime_.limits().depth) {
    unsupported("expected at most {} expressions and calls inside one another, got more", runtime_.limits().depth);
  }
  ++depth_;
  place_ = expression.place;
  runtime_.spend(1);
  Value value = std::visit([this](const auto& node) { return evaluate(node); }, expression.node);
  --depth_;
  return value;
}

Value Interpreter::evaluate(const Name& node) {
  std::size_t looked_at = 0;
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [name, value] : scope->names) {
      if (name == node.id) return value;
    }
    looked_at += scope->names.size();
  }
  runtime_.spend(looked_at / 16);
  return undefined(fmt::format("'{}' is undefined", node.id));
}

Value Interpreter::evaluate(const ListDisplay& node) {
  std::vector<Value> items;
  for (const auto& item : node.items) items.push_back(evaluate(*item));
  return runtime_.list(std::move(items), node.tuple ? SequenceKind::tuple : SequenceKind::list);
}

Value Interpreter::evaluate(const DictDisplay& node) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : node.entries) {
    Value held = evaluate(*key);
    entries.emplace_back(std::move(held), evaluate(*value));
  }
  return runtime_.dict(std::move(entries));
}

Value Interpreter::evaluate(const Attribute& node) { return attribute(runtime_, evaluate(*node.object), node.name); }

Value Interpreter::evaluate(const Subscript& node) {
  const Value object = evaluate(*node.object);
  return item(runtime_, object, evaluate(*node.index));
}

Value Interpreter::evaluate(const Slice& node) {
  const Value object = evaluate(*node.object);
  Value bounds[3];
  const ExpressionPtr* given[3] = {&node.start, &node.stop, &node.step};
  for (int i = 0; i < 3; ++i) {
    if (*given[i]) bounds[i] = evaluate(**given[i]);
  }
  const auto bound = [&](int i) { return *given[i] ? &bounds[i] : nullptr; };
  return slice(runtime_, object, bound(0), bound(1), bound(2));
}

Value Interpreter::evaluate(const FilterCall& node) {
  const Value subject = node.subject ? evaluate(*node.subject) : Value(block_text_);
  const Arguments arguments = arguments_of(node.name, node.arguments);
  const Filter filter = find_filter(node.name);
  if (filter == nullptr) unsupported("filter {} is not supported", node.name);
  return filter(runtime_, subject, arguments);
}

Value Interpreter::evaluate(const TestCall& node) {
  const Value subject = evaluate(*node.subject);
  const Arguments arguments = arguments_of(node.name, node.arguments);
  const Test test = find_test(node.name);
  if (test == nullptr) unsupported("test {} is not supported", node.name);
  return Value(test(runtime_, subject, arguments));
}

Value Interpreter::evaluate(const Unary& node) {
  Value operand = evaluate(*node.operand);
  switch (node.op) {
    case UnaryOp::logical_not:
      return Value(!truth(operand));
    case UnaryOp::negate:
      return negative(operand);
    case UnaryOp::plus:
      break;
  }
  if (operand.is<double>()) return operand;
  if (!is_integer(operand)) wrong("+ does not take {}", type_name(operand));
  return Value(integer_of(operand));
}

Value Interpreter::evaluate(const Binary& node) {
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  return binary(runtime_, node.op, left, right);
}

Value Interpreter::evaluate(const Logic& node) {
  Value left = evaluate(*node.left);
  return truth(left) == node.is_and ? evaluate(*node.right) : left;
}

Value Interpreter::evaluate(const Compare& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = evaluate(*operand);
    if (!compare(runtime_, op, left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evaluate(const Concat& node) {
  MarkedText out;
  for (const auto& part : node.parts) {
    const Value value = evaluate(*part);
    runtime_.spend(weight_of(value));
    out.append(runtime_.to_text(value));
  }
  return runtime_.text(std::move(out));
}

Value Interpreter::evaluate(const Conditional& node) {
  if (truth(evaluate(*node.condition))) return evaluate(*node.yes);
  return node.no ? evaluate(*node.no) : undefined("the inline if-expression is false and has no else");
}

}  // namespace tandem::jinja
