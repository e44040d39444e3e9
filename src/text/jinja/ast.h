// A parsed template.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/text/jinja/value.h"

namespace tandem::jinja {

struct Place {
  int line = 0, column = 0;  // from 1
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star, star_star;  // *list and **dict; null without
};

struct Constant {
  Value value;
};
struct Name {
  std::string id;
};
struct ListDisplay {
  std::vector<ExpressionPtr> items;
  bool tuple;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, index;
};
struct Slice {
  ExpressionPtr object, start, stop, step;
};  // null: left out
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct FilterCall {
  ExpressionPtr subject;
  std::string name;
  CallArguments arguments;
};  // null subject: a filter block's text
struct TestCall {
  ExpressionPtr subject;
  std::string name;
  CallArguments arguments;
};
enum class UnaryOp { negate, plus, logical_not };
struct Unary {
  UnaryOp op;
  ExpressionPtr operand;
};
enum class BinaryOp { add, subtract, multiply, divide, floor_divide, modulo, power };
struct Binary {
  BinaryOp op;
  ExpressionPtr left, right;
};
struct Logic {
  bool is_and;
  ExpressionPtr left, right;
};
enum class CompareOp { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };
struct Compare {
  ExpressionPtr first;
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
};  // chained
struct Concat {
  std::vector<ExpressionPtr> parts;
};
struct Conditional {
  ExpressionPtr condition, yes, no;
};  // no: null without else

struct Expression {
  using Node = std::variant<Constant, Name, ListDisplay, DictDisplay, Attribute, Subscript, Slice, Call, FilterCall,
                            TestCall, Unary, Binary, Logic, Compare, Concat, Conditional>;
  Place place;
  int depth;  // expressions inside one another, itself included
  Node node;
};

// What `set` and `for` assign to: a name, an attribute of a namespace, or several targets.
struct Target {
  Place place;
  std::string name;
  std::string attribute;      // of the namespace `name`; empty = the variable itself
  std::vector<Target> parts;  // for a tuple, the rest is empty then
  bool tuple = false;
};

struct Statement;
using Body = std::vector<Statement>;

struct Data {
  TextPtr text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable, condition;
  Body body, otherwise;
};  // condition: null without
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;
  Body body;
};  // filter: null, or of the block's text
struct Parameter {
  std::string name;
  ExpressionPtr fallback;
};  // null: none
struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};
struct CallBlock {
  std::unique_ptr<Macro> body;
  ExpressionPtr call;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Body body;
};
struct Generation {
  Body body;
};  // Hugging Face's mark of what the assistant said
struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<Data, Print, If, For, Set, SetBlock, std::unique_ptr<Macro>, CallBlock, FilterBlock, With,
                            Generation, Break, Continue>;
  Place place;
  Node node;
};

}  // namespace tandem::jinja
