// The parser's view of a template's tokens.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "src/text/jinja/lexer.h"

namespace tandem::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Place place() const { return now().place; }

  bool at(TokenKind kind) const { return now().kind == kind; }
  bool at_op(std::string_view op) const { return at(TokenKind::op) && now().text == op; }
  bool at_name(std::string_view name) const { return at(TokenKind::name) && now().text == name; }
  bool at_any_name(std::initializer_list<std::string_view> names) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return at_name(name); });
  }

  Token take() { return at(TokenKind::end) ? now() : tokens_[at_++]; }
  bool take_op(std::string_view op) { return at_op(op) && (take(), true); }
  bool take_name(std::string_view name) { return at_name(name) && (take(), true); }
  void expect_op(std::string_view op) {
    if (!take_op(op)) fault(fmt::format("expected {}, got {}", op, shown()));
  }
  std::string expect_name() {
    if (!at(TokenKind::name)) fault(fmt::format("expected a name, got {}", shown()));
    return take().text;
  }
  void expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) fault(fmt::format("expected {}, got {}", what, shown()));
    take();
  }

  std::string shown() const {
    switch (now().kind) {
      case TokenKind::end:
        return "the end of the template";
      case TokenKind::block_end:
        return "%}";
      case TokenKind::variable_end:
        return "}}";
      case TokenKind::string:
        return "a string";
      default:
        return now().text;
    }
  }
  [[noreturn]] void fault(std::string what) const { throw SyntaxFault{place(), std::move(what)}; }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace tandem::jinja
