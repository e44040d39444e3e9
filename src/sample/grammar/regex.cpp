#include "src/sample/grammar/regex.h"

#include <optional>

#include "src/base/error.h"
#include "src/sample/grammar/code_points.h"
#include "src/sample/grammar/expression.h"
#include "src/text/utf8.h"

namespace tandem {
namespace {

namespace ex = expressions;

constexpr std::size_t kMostCharacters = 10'000;
constexpr std::int64_t kMostNodes = 100'000;
constexpr int kDeepest = 64;

const CodePoints& digits() {
  static const CodePoints kDigits{{U'0', U'9'}};
  return kDigits;
}

const CodePoints& word_characters() {
  static const CodePoints kWord{{U'0', U'9'}, {U'A', U'Z'}, {U'_', U'_'}, {U'a', U'z'}};
  return kWord;
}

// WhiteSpace and LineTerminator of ECMA-262.
const CodePoints& space_characters() {
  static const CodePoints kSpace{{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                                 {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                 {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return kSpace;
}

CodePoints any_but_line_ends() { return complement({{U'\n', U'\n'}, {U'\r', U'\r'}, {0x2028, 0x2029}}); }

int hex_value(char32_t character) {
  if (character >= U'0' && character <= U'9') return static_cast<int>(character - U'0');
  if (character >= U'a' && character <= U'f') return static_cast<int>(character - U'a') + 10;
  if (character >= U'A' && character <= U'F') return static_cast<int>(character - U'A') + 10;
  return -1;
}

bool is_ascii_letter(char32_t character) {
  return (character >= U'a' && character <= U'z') || (character >= U'A' && character <= U'Z');
}

class RegexParser {
 public:
  RegexParser(std::string_view pattern, RegexMatch match, const std::string& name) : match_(match), name_(name) {
    for (; !pattern.empty();) {
      const Utf8Step step = utf8_step(pattern);
      if (!step.valid) fail(ErrorKind::config, "{}: character {} is not UTF-8", name_, text_.size() + 1);
      if (text_.size() == kMostCharacters)
        fail(ErrorKind::config, "{}: more than {} characters", name_, kMostCharacters);
      text_.push_back(step.character);
      pattern.remove_prefix(step.length);
    }
  }

  Expression parse() {
    std::vector<Expression> alternatives;
    do alternatives.push_back(outer_alternative());
    while (take(U'|'));
    if (!ended()) refuse(at_, ") closes no group");
    Expression whole = ex::choice(std::move(alternatives));
    if (expanded_size(whole) > kMostNodes) {
      fail(ErrorKind::config, "{}: the pattern is larger than {} characters once repetitions are written out", name_,
           kMostNodes);
    }
    return whole;
  }

 private:
  [[noreturn]] void refuse(std::size_t at, std::string_view what) const {
    std::string found = "the end of the pattern";
    if (at < text_.size()) {
      found = "'";
      append_utf8(found, text_[at]);
      found += "'";
    }
    fail(ErrorKind::config, "{}: character {} ({}): {}", name_, at + 1, found, what);
  }

  bool ended() const { return at_ >= text_.size(); }
  bool sees(char32_t character) const { return !ended() && text_[at_] == character; }
  bool take(char32_t character) {
    if (!sees(character)) return false;
    ++at_;
    return true;
  }

  // An alternative outside groups, where ^ and $ may stand.
  Expression outer_alternative() {
    const Expression padding = ex::repeat(ex::characters(complement({})), 0, -1);
    const bool search = match_ == RegexMatch::search;
    std::vector<Expression> parts;
    if (!take(U'^') && search) parts.push_back(padding);
    parts.push_back(terms());
    if (!take(U'$')) {
      if (search) parts.push_back(padding);
    } else if (!ended() && !sees(U'|')) {
      refuse(at_ - 1, "$ is supported only at the end of an alternative outside groups");
    }
    return ex::sequence(std::move(parts));
  }

  Expression group() {
    if (++depth_ > kDeepest) refuse(at_, "groups are nested deeper than 64");
    if (take(U'?')) group_kind();
    std::vector<Expression> alternatives;
    do alternatives.push_back(terms());
    while (take(U'|'));
    if (!take(U')')) refuse(at_, "expected ) or | here");
    --depth_;
    return ex::choice(std::move(alternatives));
  }

  // After "(?": a group without capture or with a name.
  void group_kind() {
    if (take(U':')) return;
    const std::size_t begin = at_;
    if (!take(U'<') || sees(U'=') || sees(U'!')) refuse(begin, "look-around and flags are not supported");
    while (!ended() && !sees(U'>')) ++at_;
    if (!take(U'>') || at_ == begin + 2) refuse(at_, "expected the name of a group and >");
  }

  Expression terms() {
    std::vector<Expression> parts;
    while (!ended() && !sees(U'|') && !sees(U')') && !sees(U'$')) parts.push_back(repeated(atom()));
    if (sees(U'$') && depth_ > 0) refuse(at_, "$ is supported only at the end of an alternative outside groups");
    return ex::sequence(std::move(parts));
  }

  Expression atom() {
    const std::size_t begin = at_;
    const char32_t character = text_[at_++];
    switch (character) {
      case U'(':
        return group();
      case U'[':
        return ex::characters(set());
      case U'.':
        return ex::characters(any_but_line_ends());
      case U'\\':
        return escaped_atom();
      case U'^':
        refuse(begin, "^ is supported only at the start of an alternative outside groups");
      case U'*':
      case U'+':
      case U'?':
        refuse(begin, "there is nothing to repeat");
      case U'{':
      case U'}':
      case U']':
        refuse(begin, "expected a backslash in front of it");
      default:
        return one_character(character);
    }
  }

  static Expression one_character(char32_t character) {
    std::string bytes;
    append_utf8(bytes, character);
    return ex::literal(std::move(bytes));
  }

  Expression repeated(Expression body) {
    const std::optional<std::pair<int, int>> counts = quantifier();
    if (!counts) return body;
    take(U'?');  // lazy
    if (sees(U'*') || sees(U'+') || sees(U'?') || sees(U'{')) refuse(at_, "a repetition cannot be repeated");
    return ex::repeat(std::move(body), counts->first, counts->second);
  }

  std::optional<std::pair<int, int>> quantifier() {
    if (take(U'*')) return std::pair{0, -1};
    if (take(U'+')) return std::pair{1, -1};
    if (take(U'?')) return std::pair{0, 1};
    const std::size_t begin = at_;
    if (!take(U'{')) return std::nullopt;
    const int least = count();
    int most = least;
    if (take(U',')) most = sees(U'}') ? -1 : count();
    if (!take(U'}')) refuse(at_, "expected } here");
    if (most >= 0 && most < least) refuse(begin, "the repetition's least count is above its most");
    return std::pair{least, most};
  }

  int count() {
    const std::size_t begin = at_;
    int value = 0;
    for (; !ended() && contains(digits(), text_[at_]); ++at_) {
      value = value * 10 + static_cast<int>(text_[at_] - U'0');
      if (value > kMostRepetitions) refuse(begin, "a repetition of more than 10,000 times");
    }
    if (at_ == begin) refuse(at_, "expected a count here");
    return value;
  }

  // After a backslash: \d and the like, or nullopt with nothing read.
  std::optional<CodePoints> escaped_set() {
    if (ended()) refuse(at_, "expected a character after the backslash");
    const char32_t letter = text_[at_++];
    switch (letter) {
      case U'd':
        return digits();
      case U'D':
        return complement(digits());
      case U'w':
        return word_characters();
      case U'W':
        return complement(word_characters());
      case U's':
        return space_characters();
      case U'S':
        return complement(space_characters());
      default:
        --at_;
        return std::nullopt;
    }
  }

  Expression escaped_atom() {
    if (auto set = escaped_set()) return ex::characters(std::move(*set));
    return one_character(escaped_character());
  }

  char32_t escaped_character() {
    const std::size_t begin = at_;
    const char32_t letter = text_[at_++];
    switch (letter) {
      case U'n':
        return U'\n';
      case U'r':
        return U'\r';
      case U't':
        return U'\t';
      case U'f':
        return U'\f';
      case U'v':
        return U'\v';
      case U'x':
        return hex(2);
      case U'u':
        return unicode_escape(begin);
      case U'c':
        if (ended() || !is_ascii_letter(text_[at_])) refuse(at_, "expected a letter after \\c");
        return text_[at_++] % 32;
      case U'0':
        if (ended() || !contains(digits(), text_[at_])) return 0;
        refuse(begin, "octal escapes are not supported");
      default:
        if (letter < 0x80 && !contains(word_characters(), letter)) return letter;
        refuse(begin, "this escape is not supported");
    }
  }

  char32_t unicode_escape(std::size_t begin) {
    char32_t value = 0;
    if (take(U'{')) {
      const std::size_t first = at_;
      for (; !ended() && !sees(U'}') && value <= kLastCodePoint; ++at_) value = value * 16 + hex_digit();
      if (at_ == first || !take(U'}')) refuse(at_, "expected hexadecimal digits up to 10FFFF and }");
    } else {
      value = hex(4);
      if (value >= 0xD800 && value <= 0xDBFF && take(U'\\')) {
        if (!take(U'u')) refuse(at_, "expected the second half of a surrogate pair");
        const char32_t low = hex(4);
        if (low < 0xDC00 || low > 0xDFFF) refuse(begin, "half of a surrogate pair is no character");
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (value > kLastCodePoint) refuse(begin, "expected a code point up to 10FFFF");
    if (value >= 0xD800 && value <= 0xDFFF) refuse(begin, "half of a surrogate pair is no character");
    return value;
  }

  char32_t hex_digit() const {
    const int value = ended() ? -1 : hex_value(text_[at_]);
    if (value < 0) refuse(at_, "expected a hexadecimal digit");
    return static_cast<char32_t>(value);
  }

  char32_t hex(int count) {
    char32_t value = 0;
    for (; count > 0; --count, ++at_) value = value * 16 + hex_digit();
    return value;
  }

  // After "[".
  CodePoints set() {
    const std::size_t begin = at_ - 1;
    const bool negated = take(U'^');
    CodePoints ranges;
    if (sees(U']')) refuse(at_, "an empty set is not supported; a ] in a set takes a backslash");
    while (!take(U']')) {
      if (ended()) refuse(begin, "this set has no end");
      add_set_item(ranges);
    }
    return negated ? complement(ranges) : normalised(ranges);
  }

  void add_set_item(CodePoints& ranges) {
    const std::size_t begin = at_;
    const std::optional<char32_t> first = set_character(ranges);
    if (!first) {
      if (sees(U'-') && at_ + 1 < text_.size() && text_[at_ + 1] != U']') refuse(begin, "a range cannot start here");
      return;
    }
    if (!sees(U'-') || at_ + 1 >= text_.size() || text_[at_ + 1] == U']') {
      ranges.push_back({*first, *first});
      return;
    }
    ++at_;
    CodePoints other;
    const std::optional<char32_t> last = set_character(other);
    if (!last || *last < *first) refuse(begin, "the range's end is not a character at or after its start");
    ranges.push_back({*first, *last});
  }

  // One character of a set; nullopt after \d and the like, which is added to `ranges`.
  std::optional<char32_t> set_character(CodePoints& ranges) {
    const char32_t character = text_[at_++];
    if (character != U'\\') return character;
    if (auto escaped = escaped_set()) {
      ranges.insert(ranges.end(), escaped->begin(), escaped->end());
      return std::nullopt;
    }
    if (take(U'b')) return U'\b';
    return escaped_character();
  }

  std::u32string text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  RegexMatch match_;
  const std::string& name_;
};

}  // namespace

Expression regex_expression(std::string_view pattern, RegexMatch match, const std::string& name) {
  return RegexParser(pattern, match, name).parse();
}

}  // namespace tandem
