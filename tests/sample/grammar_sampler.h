// Random texts of a grammar.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/sample/grammar/grammar.h"
#include "src/text/utf8.h"

namespace tandem {

// Draws texts by choosing among alternatives, and only the shortest ones once the text has grown to a wanted length.
class GrammarSampler {
 public:
  // Keeps a reference; every rule must match some text.
  explicit GrammarSampler(const Grammar& grammar, std::uint64_t seed)
      : grammar_(grammar), random_(seed), depth_(grammar.rules.size(), kEndless) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < depth_.size(); ++i) {
        const int depth = depth_of(grammar.rules[i].body);
        changed = changed || depth < depth_[i];
        depth_[i] = std::min(depth_[i], depth);
      }
    }
  }

  // A text; beyond `wanted` bytes it is ended the shortest way.
  std::string text(std::size_t wanted) {
    wanted_ = wanted;
    text_.clear();
    write(grammar_.rules[static_cast<std::size_t>(grammar_.root)].body);
    return text_;
  }

 private:
  static constexpr int kEndless = std::numeric_limits<int>::max() / 2;

  // Number of rules inside each other that the shortest way through `expression` needs.
  int depth_of(const Expression& expression) const {
    int depth = 0;
    switch (expression.kind) {
      case Expression::Kind::rule:
        return std::min(kEndless, depth_[static_cast<std::size_t>(expression.rule)] + 1);
      case Expression::Kind::choice:
        depth = kEndless;
        for (const Expression& part : expression.parts) depth = std::min(depth, depth_of(part));
        return depth;
      case Expression::Kind::repeat:
        return expression.least == 0 ? 0 : depth_of(expression.parts[0]);
      default:
        for (const Expression& part : expression.parts) depth = std::max(depth, depth_of(part));
        return depth;
    }
  }

  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  bool is_long() const { return text_.size() >= wanted_; }

  void write(const Expression& expression) {
    switch (expression.kind) {
      case Expression::Kind::literal:
        text_ += expression.bytes;
        break;
      case Expression::Kind::characters:
        append_utf8(text_, character_in(expression));
        break;
      case Expression::Kind::rule:
        write(grammar_.rules[static_cast<std::size_t>(expression.rule)].body);
        break;
      case Expression::Kind::sequence:
        for (const Expression& part : expression.parts) write(part);
        break;
      case Expression::Kind::choice:
        write(one_of(expression.parts));
        break;
      case Expression::Kind::repeat: {
        const int span = expression.most < 0 ? 6 : std::min(6, expression.most - expression.least);
        const int times = expression.least + (is_long() ? 0 : below(span + 1));
        for (int i = 0; i < times; ++i) write(expression.parts[0]);
        break;
      }
    }
  }

  const Expression& one_of(const std::vector<Expression>& parts) {
    std::vector<const Expression*> open;
    int least = kEndless;
    for (const Expression& part : parts) least = std::min(least, depth_of(part));
    for (const Expression& part : parts) {
      if (depth_of(part) < kEndless && (!is_long() || depth_of(part) == least)) open.push_back(&part);
    }
    return *open[static_cast<std::size_t>(below(static_cast<int>(open.size())))];
  }

  // Any range alike, so that rare characters come up; of a negated one, a letter or digit outside.
  char32_t character_in(const Expression& expression) {
    if (expression.negated) {
      for (char32_t character = U'0';; ++character) {
        const bool inside = std::any_of(expression.ranges.begin(), expression.ranges.end(), [&](const auto& range) {
          return range.first <= character && character <= range.last;
        });
        if (!inside) return character;
      }
    }
    const CodePointRange& range =
        expression.ranges[static_cast<std::size_t>(below(static_cast<int>(expression.ranges.size())))];
    return range.first +
           static_cast<char32_t>(below(static_cast<int>(std::min<char32_t>(range.last - range.first, 127)) + 1));
  }

  const Grammar& grammar_;
  std::mt19937_64 random_;
  std::vector<int> depth_;  // by rule
  std::size_t wanted_ = 0;
  std::string text_;
};

}  // namespace tandem
