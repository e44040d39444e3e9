// Reads the expressions of a template.
#pragma once
#include <set>
#include <string>

#include "src/text/jinja/token_stream.h"

namespace tandem::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPtr expression();   // a or b, a if c else d ...
  ExpressionPtr alternative();  // the same without `if` on its outside
  // Expressions with commas between them are a tuple.
  ExpressionPtr tuple(bool with_condition = true);
  // `| name(...) | name ...` on a block's text. `inline_first`: the first filter has no bar before it. Null without
  // any.
  ExpressionPtr block_filters(bool inline_first);

  // Counts what is nested; throws SyntaxFault too deep down.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser);
    ~Nested() { --parser_.nested_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    ExpressionParser& parser_;
  };

  // The variables that were read since the last exchange.
  std::set<std::string> exchange_names(std::set<std::string> names) { return std::exchange(names_, std::move(names)); }
  const std::set<std::string>& strings() const { return strings_; }  // string literals
  // Whether what is read now stands in a branch that may never run: a filter or test that is not supported is a fault
  // only where it runs then. Returns what was set before.
  bool exchange_branch(bool in_branch) { return std::exchange(in_branch_, in_branch); }
  // Throws SyntaxFault for the first filter or test that is not supported elsewhere.
  void require_known() const {
    if (!unknown_.empty()) throw unknown_.front();
  }

 private:
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter = true);
  ExpressionPtr primary();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr number(const Token& token);
  ExpressionPtr postfix(ExpressionPtr object);
  ExpressionPtr filters_and_tests(ExpressionPtr subject);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr filter(ExpressionPtr subject);
  ExpressionPtr test(ExpressionPtr subject);
  ExpressionPtr call(ExpressionPtr callee);
  CallArguments arguments();
  void argument(CallArguments& into);

  TokenStream& tokens_;
  void unknown(Place place, const char* what, const std::string& name);

  int nested_ = 0;
  bool in_branch_ = false;
  std::vector<SyntaxFault> unknown_;
  std::set<std::string> names_, strings_;
};

}  // namespace tandem::jinja
