#include "src/text/jinja/expression_parser.h"

#include <charconv>
#include <cmath>

#include "src/text/jinja/filters.h"
#include "src/text/jinja/tests.h"

namespace tandem::jinja {
namespace {

constexpr int kDeepest = 100;  // brackets, operators and blocks inside one another

int depth_of(const ExpressionPtr& expression) { return expression ? expression->depth : 0; }

int depth_of(const CallArguments& arguments) {
  int depth = std::max(depth_of(arguments.star), depth_of(arguments.star_star));
  for (const auto& argument : arguments.positional) depth = std::max(depth, depth_of(argument));
  for (const auto& [name, argument] : arguments.named) depth = std::max(depth, depth_of(argument));
  return depth;
}

int depth_of(const Constant&) { return 0; }
int depth_of(const Name&) { return 0; }
int depth_of(const std::vector<ExpressionPtr>& parts) {
  int depth = 0;
  for (const auto& part : parts) depth = std::max(depth, depth_of(part));
  return depth;
}
int depth_of(const ListDisplay& node) { return depth_of(node.items); }
int depth_of(const DictDisplay& node) {
  int depth = 0;
  for (const auto& [key, value] : node.entries) depth = std::max({depth, depth_of(key), depth_of(value)});
  return depth;
}
int depth_of(const Attribute& node) { return depth_of(node.object); }
int depth_of(const Subscript& node) { return std::max(depth_of(node.object), depth_of(node.index)); }
int depth_of(const Slice& node) {
  return std::max({depth_of(node.object), depth_of(node.start), depth_of(node.stop), depth_of(node.step)});
}
int depth_of(const Call& node) { return std::max(depth_of(node.callee), depth_of(node.arguments)); }
int depth_of(const FilterCall& node) { return std::max(depth_of(node.subject), depth_of(node.arguments)); }
int depth_of(const TestCall& node) { return std::max(depth_of(node.subject), depth_of(node.arguments)); }
int depth_of(const Unary& node) { return depth_of(node.operand); }
int depth_of(const Binary& node) { return std::max(depth_of(node.left), depth_of(node.right)); }
int depth_of(const Logic& node) { return std::max(depth_of(node.left), depth_of(node.right)); }
int depth_of(const Compare& node) {
  int depth = depth_of(node.first);
  for (const auto& [op, operand] : node.rest) depth = std::max(depth, depth_of(operand));
  return depth;
}
int depth_of(const Concat& node) { return depth_of(node.parts); }
int depth_of(const Conditional& node) {
  return std::max({depth_of(node.condition), depth_of(node.yes), depth_of(node.no)});
}

ExpressionPtr make(Place place, Expression::Node node) {
  const int depth = 1 + std::visit([](const auto& n) { return depth_of(n); }, node);
  if (depth > 2 * kDeepest) throw SyntaxFault{place, "the expression is too long or too deeply nested"};
  return std::make_unique<Expression>(Expression{place, depth, std::move(node)});
}

}  // namespace

ExpressionParser::Nested::Nested(ExpressionParser& parser) : parser_(parser) {
  if (parser.nested_ == kDeepest) {
    parser.tokens_.fault(fmt::format("expected at most {} brackets and blocks inside one another", kDeepest));
  }
  ++parser.nested_;
}

ExpressionPtr ExpressionParser::expression() {
  const Nested nested(*this);
  Place place = tokens_.place();
  const std::size_t known_unknown = unknown_.size();
  ExpressionPtr result = alternative();
  while (tokens_.take_name("if")) {
    ExpressionPtr condition = alternative();
    ExpressionPtr otherwise = tokens_.take_name("else") ? expression() : nullptr;
    result = make(place, Conditional{std::move(condition), std::move(result), std::move(otherwise)});
    place = tokens_.place();
    unknown_.resize(known_unknown);  // all three parts are branches to Jinja
  }
  return result;
}

void ExpressionParser::unknown(Place place, const char* what, const std::string& name) {
  if (!in_branch_) unknown_.push_back({place, fmt::format("{} {} is not supported", what, name)});
}

ExpressionPtr ExpressionParser::alternative() {
  const Place place = tokens_.place();
  ExpressionPtr left = conjunction();
  while (tokens_.take_name("or")) left = make(place, Logic{false, std::move(left), conjunction()});
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  const Place place = tokens_.place();
  ExpressionPtr left = negation();
  while (tokens_.take_name("and")) left = make(place, Logic{true, std::move(left), negation()});
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  const Place place = tokens_.place();
  if (!tokens_.take_name("not")) return comparison();
  const Nested nested(*this);
  return make(place, Unary{UnaryOp::logical_not, negation()});
}

ExpressionPtr ExpressionParser::comparison() {
  static const std::vector<std::pair<std::string_view, CompareOp>> operators = {
      {"==", CompareOp::equal},      {"!=", CompareOp::unequal}, {"<", CompareOp::less},
      {"<=", CompareOp::less_equal}, {">", CompareOp::greater},  {">=", CompareOp::greater_equal}};
  const Place place = tokens_.place();
  Compare node{sum(), {}};
  while (true) {
    const auto op =
        std::find_if(operators.begin(), operators.end(), [&](const auto& known) { return tokens_.at_op(known.first); });
    if (op != operators.end()) {
      tokens_.take();
      node.rest.emplace_back(op->second, sum());
    } else if (tokens_.take_name("in")) {
      node.rest.emplace_back(CompareOp::in, sum());
    } else if (tokens_.at_name("not") && tokens_.after().kind == TokenKind::name && tokens_.after().text == "in") {
      tokens_.take();
      tokens_.take();
      node.rest.emplace_back(CompareOp::not_in, sum());
    } else {
      break;
    }
  }
  if (node.rest.empty()) return std::move(node.first);
  return make(place, std::move(node));
}

ExpressionPtr ExpressionParser::sum() {
  const Place place = tokens_.place();
  ExpressionPtr left = concat();
  while (tokens_.at_op("+") || tokens_.at_op("-")) {
    const BinaryOp op = tokens_.take().text == "+" ? BinaryOp::add : BinaryOp::subtract;
    left = make(place, Binary{op, std::move(left), concat()});
  }
  return left;
}

ExpressionPtr ExpressionParser::concat() {
  const Place place = tokens_.place();
  Concat node;
  node.parts.push_back(product());
  while (tokens_.take_op("~")) node.parts.push_back(product());
  if (node.parts.size() == 1) return std::move(node.parts.front());
  return make(place, std::move(node));
}

ExpressionPtr ExpressionParser::product() {
  const Place place = tokens_.place();
  ExpressionPtr left = power();
  while (tokens_.at_op("*") || tokens_.at_op("/") || tokens_.at_op("//") || tokens_.at_op("%")) {
    const BinaryOp kind = tokens_.at_op("*")    ? BinaryOp::multiply
                          : tokens_.at_op("/")  ? BinaryOp::divide
                          : tokens_.at_op("//") ? BinaryOp::floor_divide
                                                : BinaryOp::modulo;
    tokens_.take();
    left = make(place, Binary{kind, std::move(left), power()});
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  const Place place = tokens_.place();
  ExpressionPtr left = unary();
  while (tokens_.take_op("**")) left = make(place, Binary{BinaryOp::power, std::move(left), unary()});
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  const Nested nested(*this);
  const Place place = tokens_.place();
  ExpressionPtr node;
  if (tokens_.take_op("-")) {
    node = make(place, Unary{UnaryOp::negate, unary(false)});
  } else if (tokens_.take_op("+")) {
    node = make(place, Unary{UnaryOp::plus, unary(false)});
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::primary() {
  const Token token = tokens_.now();
  if (token.kind == TokenKind::name) {
    tokens_.take();
    if (token.text == "true" || token.text == "True") return make(token.place, Constant{Value(true)});
    if (token.text == "false" || token.text == "False") return make(token.place, Constant{Value(false)});
    if (token.text == "none" || token.text == "None") return make(token.place, Constant{Value(None{})});
    names_.insert(token.text);
    return make(token.place, Name{token.text});
  }
  if (token.kind == TokenKind::string) {
    std::string text;
    while (tokens_.at(TokenKind::string)) text += tokens_.take().text;
    strings_.insert(text);
    return make(token.place, Constant{literal(std::move(text))});
  }
  if (token.kind == TokenKind::integer || token.kind == TokenKind::real) return number(tokens_.take());
  if (tokens_.at_op("[")) return list();
  if (tokens_.at_op("{")) return dict();
  if (!tokens_.take_op("(")) tokens_.fault(fmt::format("expected an expression, got {}", tokens_.shown()));
  ExpressionPtr inner = tokens_.at_op(")") ? make(token.place, ListDisplay{{}, true}) : tuple();
  tokens_.expect_op(")");
  return inner;
}

ExpressionPtr ExpressionParser::number(const Token& token) {
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (token.kind == TokenKind::real) {
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc())
      throw SyntaxFault{token.place, "the number is out of range"};
    return make(token.place, Constant{Value(value)});
  }
  std::int64_t value = 0;
  if (std::from_chars(begin, end, value).ec != std::errc())
    throw SyntaxFault{token.place, "expected an integer below 2^63"};
  return make(token.place, Constant{Value(value)});
}

ExpressionPtr ExpressionParser::tuple(bool with_condition) {
  const Place place = tokens_.place();
  const auto one = [&] { return with_condition ? expression() : alternative(); };
  ListDisplay node{{}, true};
  node.items.push_back(one());
  if (!tokens_.at_op(",")) return std::move(node.items.front());
  while (tokens_.take_op(",")) {
    const bool over = tokens_.at(TokenKind::variable_end) || tokens_.at(TokenKind::block_end) || tokens_.at_op(")");
    if (over) break;
    node.items.push_back(one());
  }
  return make(place, std::move(node));
}

ExpressionPtr ExpressionParser::list() {
  const Place place = tokens_.take().place;
  ListDisplay node{{}, false};
  while (!tokens_.at_op("]")) {
    node.items.push_back(expression());
    if (!tokens_.take_op(",")) break;
  }
  tokens_.expect_op("]");
  return make(place, std::move(node));
}

ExpressionPtr ExpressionParser::dict() {
  const Place place = tokens_.take().place;
  DictDisplay node;
  while (!tokens_.at_op("}")) {
    ExpressionPtr key = expression();
    tokens_.expect_op(":");
    node.entries.emplace_back(std::move(key), expression());
    if (!tokens_.take_op(",")) break;
  }
  tokens_.expect_op("}");
  return make(place, std::move(node));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr object) {
  while (true) {
    if (tokens_.at_op(".") || tokens_.at_op("[")) {
      object = subscript(std::move(object));
    } else if (tokens_.at_op("(")) {
      object = call(std::move(object));
    } else {
      return object;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr subject) {
  while (true) {
    if (tokens_.at_op("|")) {
      tokens_.take();
      subject = filter(std::move(subject));
    } else if (tokens_.at_name("is")) {
      subject = test(std::move(subject));
    } else if (tokens_.at_op("(")) {
      subject = call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  const Place place = tokens_.place();
  if (tokens_.take_op(".")) {
    if (tokens_.at(TokenKind::integer)) return make(place, Subscript{std::move(object), number(tokens_.take())});
    return make(place, Attribute{std::move(object), tokens_.expect_name()});
  }
  tokens_.expect_op("[");
  ExpressionPtr first = tokens_.at_op(":") ? nullptr : expression();
  if (!tokens_.take_op(":")) {
    if (tokens_.at_op(",")) tokens_.fault("a subscript with a comma is not supported");
    tokens_.expect_op("]");
    return make(place, Subscript{std::move(object), std::move(first)});
  }
  const auto bound = [&] { return tokens_.at_op(":") || tokens_.at_op("]") ? nullptr : expression(); };
  ExpressionPtr stop = bound();
  ExpressionPtr step = tokens_.take_op(":") ? bound() : nullptr;
  tokens_.expect_op("]");
  return make(place, Slice{std::move(object), std::move(first), std::move(stop), std::move(step)});
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr subject) {
  const Place place = tokens_.place();
  const std::string name = tokens_.expect_name();
  if (find_filter(name) == nullptr) unknown(place, "filter", name);
  CallArguments given = tokens_.at_op("(") ? arguments() : CallArguments{};
  return make(place, FilterCall{std::move(subject), name, std::move(given)});
}

ExpressionPtr ExpressionParser::block_filters(bool inline_first) {
  ExpressionPtr result;
  while (inline_first || tokens_.take_op("|")) {
    inline_first = false;
    result = filter(std::move(result));
  }
  return result;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr subject) {
  const Place place = tokens_.take().place;
  const bool negated = tokens_.take_name("not");
  const Place name_place = tokens_.place();
  const std::string name = tokens_.expect_name();
  if (find_test(name) == nullptr) unknown(name_place, "test", name);
  CallArguments given;
  const bool names_argument = tokens_.at(TokenKind::name) && !tokens_.at_any_name({"else", "or", "and"});
  const bool argument_follows = names_argument || tokens_.at(TokenKind::string) || tokens_.at(TokenKind::integer) ||
                                tokens_.at(TokenKind::real) || tokens_.at_op("[") || tokens_.at_op("{");
  if (tokens_.at_op("(")) {
    given = arguments();
  } else if (argument_follows) {
    if (tokens_.at_name("is")) tokens_.fault("tests cannot be chained with is");
    given.positional.push_back(postfix(primary()));
  }
  ExpressionPtr result = make(place, TestCall{std::move(subject), name, std::move(given)});
  return negated ? make(place, Unary{UnaryOp::logical_not, std::move(result)}) : std::move(result);
}

ExpressionPtr ExpressionParser::call(ExpressionPtr callee) {
  const Place place = tokens_.place();
  return make(place, Call{std::move(callee), arguments()});
}

CallArguments ExpressionParser::arguments() {
  CallArguments given;
  tokens_.expect_op("(");
  while (!tokens_.at_op(")")) {
    argument(given);
    if (!tokens_.take_op(",")) break;
  }
  tokens_.expect_op(")");
  return given;
}

void ExpressionParser::argument(CallArguments& into) {
  if (into.star_star) tokens_.fault("an argument follows **");
  if (tokens_.take_op("**")) {
    into.star_star = expression();
  } else if (tokens_.take_op("*")) {
    if (into.star) tokens_.fault("* is given twice");
    into.star = expression();
  } else if (tokens_.at(TokenKind::name) && tokens_.after().kind == TokenKind::op && tokens_.after().text == "=") {
    const std::string name = tokens_.take().text;
    tokens_.take();
    for (const auto& [known, value] : into.named) {
      if (known == name) tokens_.fault(fmt::format("argument {} is given twice", name));
    }
    into.named.emplace_back(name, expression());
  } else {
    if (into.star || !into.named.empty()) tokens_.fault("a positional argument follows a named one");
    into.positional.push_back(expression());
  }
}

}  // namespace tandem::jinja
