#include "src/text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "src/text/jinja/string_escapes.h"

namespace tandem::jinja {
namespace {

constexpr std::string_view kBlank = " \t\n\r\f\v";

bool blank(char c) { return kBlank.find(c) != std::string_view::npos; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// One kind of newline, and none at the very end.
std::string normalized(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      data();
    }
    add(TokenKind::end, "", here());
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fault(const std::string& what) { throw SyntaxFault{here(), what}; }

  Place here() {
    for (; counted_ < at_; ++counted_) {
      if (source_[counted_] == '\n') {
        ++line_;
        line_begin_ = counted_ + 1;
      }
    }
    return {line_, static_cast<int>(at_ - line_begin_) + 1};
  }

  void add(TokenKind kind, std::string text, Place place) { tokens_.push_back({kind, std::move(text), place}); }
  bool next_is(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }
  void skip_blanks() {
    while (at_ < source_.size() && blank(source_[at_])) ++at_;
  }

  // Text up to the next tag, then the tag.
  void data() {
    const Place place = here();
    std::size_t tag = at_;
    do {
      tag = source_.find('{', tag);
    } while (tag != std::string::npos && !is_tag(tag) && ++tag > 0);
    if (tag == std::string::npos) {
      add(TokenKind::data, source_.substr(at_), place);
      at_ = source_.size();
      return;
    }
    std::string text = source_.substr(at_, tag - at_);
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    strip_end(text, kind, sign);
    if (!text.empty()) add(TokenKind::data, std::move(text), place);
    at_ = tag;
    const Place start = here();
    at_ += sign == '-' || sign == '+' ? 3 : 2;
    if (kind == '#') return comment();
    if (kind == '%' && raw()) return;
    add(kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin, "", start);
    inside(kind == '{');
  }

  bool is_tag(std::size_t at) const {
    const char next = at + 1 < source_.size() ? source_[at + 1] : ' ';
    return next == '{' || next == '%' || next == '#';
  }

  // What a tag takes away from the text before it.
  void strip_end(std::string& text, char kind, char sign) const {
    if (sign == '-') {
      while (!text.empty() && blank(text.back())) text.pop_back();
      return;
    }
    if (sign == '+' || kind == '{') return;
    const std::size_t newline = text.rfind('\n');
    if (newline == std::string::npos && !line_starting_) return;
    const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
    if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), blank)) text.resize(begin);
  }

  // Goes past the end of a tag, whose closing characters begin at at_, and what it takes away from the text after it.
  void close(std::string_view closing, bool trims_newline) {
    const char sign = source_[at_] == '-' || source_[at_] == '+' ? source_[at_] : ' ';
    at_ += closing.size() + (sign == ' ' ? 0 : 1);
    if (sign == '-') skip_blanks();
    if (sign == ' ' && trims_newline && at_ < source_.size() && source_[at_] == '\n') ++at_;
    line_starting_ = source_[at_ - 1] == '\n';
  }

  // True where a tag ends here: its closing characters, a sign before them or not.
  bool closes(std::string_view closing, bool plus) const {
    if (next_is(closing)) return true;
    const bool sign = at_ < source_.size() && (source_[at_] == '-' || (plus && source_[at_] == '+'));
    return sign && source_.compare(at_ + 1, closing.size(), closing) == 0;
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fault("the comment has no end");
    const bool sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    at_ = sign ? end - 1 : end;
    close("#}", true);
  }

  // {% raw %}: everything up to {% endraw %} is data. False, and nothing read, for any other block.
  bool raw() {
    const std::size_t start = at_;
    if (!word_and_close("raw", false)) {
      at_ = start;
      return false;
    }
    const Place place = here();
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      std::string text = source_.substr(at_, tag - at_);
      const std::size_t text_begin = at_;
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      at_ = tag + (sign == '-' || sign == '+' ? 3 : 2);
      const bool was_starting = line_starting_;
      if (word_and_close("endraw", true)) {
        const bool now_starting = std::exchange(line_starting_, was_starting);
        strip_end(text, '%', sign);
        line_starting_ = now_starting;
        if (!text.empty()) add(TokenKind::data, std::move(text), place);
        return true;
      }
      at_ = text_begin;
    }
    fault("the raw block has no end");
  }

  bool word_and_close(std::string_view word, bool trims) {
    skip_blanks();
    if (!next_is(word)) return false;
    at_ += word.size();
    skip_blanks();
    if (!closes("%}", trims)) return false;
    close("%}", trims);
    return true;
  }

  // The tokens of one tag.
  void inside(bool variable) {
    const std::string_view closing = variable ? "}}" : "%}";
    std::string open;  // brackets that are open
    while (true) {
      skip_blanks();
      if (at_ >= source_.size()) fault("the tag has no end");
      if (open.empty() && closes(closing, !variable)) {
        add(variable ? TokenKind::variable_end : TokenKind::block_end, "", here());
        return close(closing, !variable);
      }
      const char c = source_[at_];
      if (digit(c)) {
        number();
      } else if (name_start(c)) {
        name();
      } else if (c == '\'' || c == '"') {
        string();
      } else {
        punctuation(open);
      }
    }
  }

  void name() {
    const std::size_t begin = at_;
    const Place place = here();
    while (at_ < source_.size() && (name_start(source_[at_]) || digit(source_[at_]))) ++at_;
    if (at_ < source_.size() && static_cast<unsigned char>(source_[at_]) >= 0x80)
      fault("names beyond ASCII are not supported");
    add(TokenKind::name, source_.substr(begin, at_ - begin), place);
  }

  // Digits, single underscores between them left out.
  std::string digits(bool (*accepts)(char)) {
    std::string out;
    while (at_ < source_.size()) {
      const bool joins = source_[at_] == '_' && at_ + 1 < source_.size() && accepts(source_[at_ + 1]);
      if (!accepts(source_[at_]) && !joins) break;
      if (!joins) out += source_[at_];
      ++at_;
    }
    return out;
  }

  void number() {
    const Place place = here();
    if (source_[at_] == '0' && at_ + 1 < source_.size() &&
        std::string_view("xXoObB").find(source_[at_ + 1]) != std::string_view::npos) {
      fault("integers in another base are not supported");
    }
    std::string text = digits(digit);
    bool real = false;
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == TokenKind::op && tokens_.back().text == ".";
    if (!after_dot && at_ + 1 < source_.size() && source_[at_] == '.' && digit(source_[at_ + 1])) {
      ++at_;
      text += '.';
      text += digits(digit);
      real = true;
    }
    const std::size_t sign = at_ + 1 < source_.size() && (source_[at_ + 1] == '-' || source_[at_ + 1] == '+') ? 1 : 0;
    const bool exponent = at_ < source_.size() && (source_[at_] == 'e' || source_[at_] == 'E') &&
                          at_ + sign + 1 < source_.size() && digit(source_[at_ + sign + 1]);
    if (!after_dot && exponent) {
      text += source_.substr(at_, 1 + sign);
      at_ += 1 + sign;
      text += digits(digit);
      real = true;
    }
    if (!real && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != std::string::npos) {
      fault("an integer begins with 0");
    }
    if (at_ < source_.size() && name_start(source_[at_])) fault("a number runs into a name");
    add(real ? TokenKind::real : TokenKind::integer, std::move(text), place);
  }

  void string() {
    const Place place = here();
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fault("the string has no end");
    std::string value;
    if (const char* problem = read_escapes(std::string_view(source_).substr(at_ + 1, end - at_ - 1), value)) {
      fault(problem);
    }
    at_ = end + 1;
    add(TokenKind::string, std::move(value), place);
  }

  void punctuation(std::string& open) {
    static constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                                    "<",  ">",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* found =
        std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view op) { return next_is(op); });
    if (found == kOperators.end()) fault(fmt::format("unexpected character {:?}", source_.substr(at_, 1)));
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) fault(fmt::format("unexpected {}", c));
      open.pop_back();
    }
    add(TokenKind::op, std::string(*found), here());
    at_ += found->size();
  }

  std::string source_;
  std::size_t at_ = 0, counted_ = 0, line_begin_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what was read last ended a line
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace tandem::jinja
