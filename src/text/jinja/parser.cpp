#include "src/text/jinja/parser.h"

#include "src/text/jinja/expression_parser.h"

namespace tandem::jinja {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  Tree run() {
    Body body = statements({});
    expressions_.require_known();
    return {std::move(body), expressions_.strings()};
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Up to a block that begins with one of `ends`, whose name is the current token then; up to the end without ends.
  Body statements(Ends ends) {
    Body body;
    while (!tokens_.at(TokenKind::end)) {
      const Place place = tokens_.place();
      if (tokens_.at(TokenKind::data)) {
        body.push_back({place, Data{std::make_shared<const MarkedText>(tokens_.take().text, false)}});
      } else if (tokens_.at(TokenKind::variable_begin)) {
        tokens_.take();
        body.push_back({place, Print{expressions_.tuple()}});
        tokens_.expect(TokenKind::variable_end, "}}");
      } else {
        tokens_.expect(TokenKind::block_begin, "a block");
        if (tokens_.at_any_name(ends)) return body;
        body.push_back({place, statement()});
        tokens_.expect(TokenKind::block_end, "%}");
      }
    }
    if (ends.size() > 0)
      tokens_.fault(fmt::format("expected {{% {} %}}, got the end of the template", *(ends.end() - 1)));
    return body;
  }

  // What `read` reads, which is part of a branch of `if` or not: Jinja takes most blocks inside a branch out of it.
  template <typename Read>
  auto in_branch(bool branch, Read read) {
    const bool outer = expressions_.exchange_branch(branch);
    auto result = read();
    expressions_.exchange_branch(outer);
    return result;
  }

  // The body of a block whose opening tag ends here. The name that ended it is taken.
  std::pair<Body, std::string> block(Ends ends, bool branch = false) {
    const ExpressionParser::Nested nested(expressions_);
    tokens_.take_op(":");
    tokens_.expect(TokenKind::block_end, "%}");
    Body body = in_branch(branch, [&] { return statements(ends); });
    return {std::move(body), tokens_.take().text};
  }

  // A body that runs apart from the loops around it.
  Body apart(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = block({end}).first;
    loops_ = loops;
    return body;
  }

  Statement::Node statement() {
    const Place place = tokens_.place();
    const std::string tag = tokens_.expect_name();
    if (tag == "if") return if_block();
    if (tag == "for") return for_block();
    if (tag == "set") return set_block();
    if (tag == "macro") return macro();
    if (tag == "call") return call_block();
    if (tag == "with") return with_block();
    if (tag == "generation") return Generation{apart("endgeneration")};
    if (tag == "filter") {
      ExpressionPtr filter = in_branch(false, [&] { return expressions_.block_filters(true); });
      return FilterBlock{std::move(filter), apart("endfilter")};
    }
    if (tag == "print") return Print{expressions_.tuple()};
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) throw SyntaxFault{place, fmt::format("{} stands outside a loop", tag)};
      if (tag == "break") return Break{};
      return Continue{};
    }
    throw SyntaxFault{place, fmt::format("block {} is not supported", tag)};
  }

  If if_block() {
    If node;
    while (true) {
      ExpressionPtr condition = in_branch(true, [&] { return expressions_.tuple(false); });
      auto [body, ending] = block({"elif", "else", "endif"}, true);
      node.branches.emplace_back(std::move(condition), std::move(body));
      if (ending == "elif") continue;
      if (ending == "else") node.otherwise = block({"endif"}, true).first;
      return node;
    }
  }

  For for_block() {
    For node;
    node.target = target(false);
    if (!tokens_.take_name("in")) tokens_.fault(fmt::format("expected in, got {}", tokens_.shown()));
    node.iterable = expressions_.tuple(false);
    if (tokens_.take_name("if")) node.condition = in_branch(false, [&] { return expressions_.expression(); });
    if (tokens_.at_name("recursive")) tokens_.fault("a recursive loop is not supported");
    ++loops_;
    forbid_loop(node.target);
    auto [body, ending] = block({"endfor", "else"});
    --loops_;
    node.body = std::move(body);
    if (ending == "else") node.otherwise = block({"endfor"}).first;
    return node;
  }

  Statement::Node set_block() {
    Target to = target(true);
    if (loops_ > 0) forbid_loop(to);
    if (tokens_.take_op("=")) return Set{std::move(to), expressions_.tuple()};
    ExpressionPtr filters = in_branch(false, [&] { return expressions_.block_filters(false); });
    return SetBlock{std::move(to), std::move(filters), apart("endset")};
  }

  void forbid_loop(const Target& target) const {
    if (target.name == "loop") throw SyntaxFault{target.place, "loop cannot be assigned to inside a loop"};
    for (const Target& part : target.parts) forbid_loop(part);
  }

  Target one_target(bool attributes) {
    if (tokens_.take_op("(")) {
      Target inner = target(attributes);
      tokens_.expect_op(")");
      return inner;
    }
    Target to;
    to.place = tokens_.place();
    to.name = tokens_.expect_name();
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (to.name == constant) throw SyntaxFault{to.place, fmt::format("{} cannot be assigned to", constant)};
    }
    if (attributes && tokens_.take_op(".")) to.attribute = tokens_.expect_name();
    return to;
  }

  Target target(bool attributes) {
    const ExpressionParser::Nested nested(expressions_);
    Target first = one_target(attributes);
    if (!tokens_.at_op(",")) return first;
    Target all;
    all.place = first.place;
    all.tuple = true;
    all.parts.push_back(std::move(first));
    while (tokens_.take_op(",")) {
      if (tokens_.at_name("in") || tokens_.at_op("=") || tokens_.at_op(")")) break;
      all.parts.push_back(one_target(attributes));
    }
    return all;
  }

  std::vector<Parameter> signature() {
    std::vector<Parameter> parameters;
    tokens_.expect_op("(");
    while (!tokens_.at_op(")")) {
      if (!parameters.empty()) tokens_.expect_op(",");
      Parameter parameter{tokens_.expect_name(), nullptr};
      if (tokens_.take_op("=")) {
        parameter.fallback = expressions_.expression();
      } else if (!parameters.empty() && parameters.back().fallback) {
        tokens_.fault("a parameter without a default follows one with a default");
      }
      parameters.push_back(std::move(parameter));
    }
    tokens_.expect_op(")");
    return parameters;
  }

  // The body of a macro, and which of the special names it reads.
  void macro_body(Macro& macro, std::string_view end) {
    const std::set<std::string> outside = expressions_.exchange_names({});
    macro.body = apart(end);
    const std::set<std::string> names = expressions_.exchange_names(outside);
    macro.uses_caller = names.contains("caller");
    macro.uses_varargs = names.contains("varargs");
    macro.uses_kwargs = names.contains("kwargs");
    for (const Parameter& parameter : macro.parameters) {
      if (parameter.name == "caller" || parameter.name == "varargs" || parameter.name == "kwargs") {
        tokens_.fault(fmt::format("a parameter named {} is not supported", parameter.name));
      }
    }
  }

  std::unique_ptr<Macro> macro() {
    auto node = std::make_unique<Macro>();
    node->name = tokens_.expect_name();
    node->parameters = in_branch(false, [&] { return signature(); });
    macro_body(*node, "endmacro");
    return node;
  }

  CallBlock call_block() {
    auto body = std::make_unique<Macro>();
    body->name = "caller";
    if (tokens_.at_op("(")) body->parameters = in_branch(false, [&] { return signature(); });
    ExpressionPtr call = expressions_.expression();
    if (!std::holds_alternative<Call>(call->node)) throw SyntaxFault{call->place, "expected a call"};
    macro_body(*body, "endcall");
    return {std::move(body), std::move(call)};
  }

  With with_block() {
    With node;
    while (!tokens_.at(TokenKind::block_end)) {
      if (!node.variables.empty()) tokens_.expect_op(",");
      Target to = one_target(false);
      tokens_.expect_op("=");
      node.variables.emplace_back(std::move(to), expressions_.expression());
    }
    node.body = block({"endwith"}).first;
    return node;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // around the current statement, and within the body that a break would leave
};

}  // namespace

Tree parse(std::string_view source) { return Parser(source).run(); }

}  // namespace tandem::jinja
