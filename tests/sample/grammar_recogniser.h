// What a grammar matches, by Earley's algorithm over code points: slow, simple, and made from the definition of
// Grammar alone, so that it can judge everything else that reads grammars.
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/sample/grammar/grammar.h"
#include "src/text/utf8.h"

namespace tandem {

class GrammarRecogniser {
 public:
  // Keeps a reference.
  explicit GrammarRecogniser(const Grammar& grammar) : grammar_(grammar) {}

  // Whether the root matches all of `text`.
  bool matches(std::string_view text) { return read(text) && done_.contains({&root(), 0}); }

  // Whether the root matches some text that begins with `text`, given that every part of the grammar matches something.
  bool begins(std::string_view text) { return read(text) && !columns_.back().items.empty(); }

 private:
  // An expression of which a part has been read: parts of a sequence, turns of a repeat, code points of a literal, or 1
  // for all others. It began before code point `origin`.
  struct Item {
    const Expression* expression;
    int progress;
    std::size_t origin;
    auto key() const { return std::tuple(expression, progress, origin); }
    bool operator<(const Item& other) const { return key() < other.key(); }
  };

  struct Column {
    std::set<Item> items;
    std::map<const Expression*, std::vector<Item>> waiting;  // by the expression that must come next
  };

  const Expression& root() const { return grammar_.rules[static_cast<std::size_t>(grammar_.root)].body; }

  bool read(std::string_view text) {
    columns_.assign(1, {});
    done_.clear();
    add({&root(), 0, 0});
    while (!text.empty()) {
      const Utf8Step step = utf8_step(text);
      if (!step.valid) return false;
      const Column before = columns_.back();
      columns_.emplace_back();
      done_.clear();
      for (const Item& item : before.items) {
        if (reads(item, step.character)) add({item.expression, item.progress + 1, item.origin});
      }
      text.remove_prefix(step.length);
    }
    return true;
  }

  static bool reads(const Item& item, char32_t character) {
    const Expression& expression = *item.expression;
    if (expression.kind == Expression::Kind::characters && item.progress == 0) {
      bool inside = false;
      for (const CodePointRange& range : expression.ranges) {
        inside = inside || (range.first <= character && character <= range.last);
      }
      return inside != expression.negated;
    }
    if (expression.kind != Expression::Kind::literal) return false;
    std::string_view rest = expression.bytes;
    for (int i = 0; i < item.progress; ++i) rest.remove_prefix(utf8_step(rest).length);
    return !rest.empty() && utf8_step(rest).character == character;
  }

  // Adds an item to the last column, and whatever follows from it without reading. A repeat without limit counts no
  // further than its least, so that a part that matches nothing cannot go on for ever.
  void add(Item item) {
    std::vector<Item> open{item};
    while (!open.empty()) {
      Item next = open.back();
      open.pop_back();
      const Expression& expression = *next.expression;
      if (expression.kind == Expression::Kind::repeat && expression.most < 0) {
        next.progress = std::min(next.progress, expression.least);
      }
      if (!columns_.back().items.insert(next).second) continue;
      if (is_complete(next)) complete(next, open);
      for (const Expression* part : parts_after(next)) {
        columns_.back().waiting[part].push_back(next);
        open.push_back({part, 0, columns_.size() - 1});
        if (done_.contains({part, columns_.size() - 1})) open.push_back(advanced(next));
      }
    }
  }

  void complete(const Item& item, std::vector<Item>& open) {
    if (!done_.insert({item.expression, item.origin}).second) return;
    for (const Item& waiting : columns_[item.origin].waiting[item.expression]) open.push_back(advanced(waiting));
  }

  static Item advanced(const Item& item) { return {item.expression, item.progress + 1, item.origin}; }

  static bool is_complete(const Item& item) {
    const Expression& expression = *item.expression;
    switch (expression.kind) {
      case Expression::Kind::literal: {
        int length = 0;
        for (std::string_view rest = expression.bytes; !rest.empty(); rest.remove_prefix(utf8_step(rest).length)) {
          ++length;
        }
        return item.progress == length;
      }
      case Expression::Kind::sequence:
        return item.progress == static_cast<int>(expression.parts.size());
      case Expression::Kind::repeat:
        return item.progress >= expression.least;
      default:
        return item.progress == 1;
    }
  }

  std::vector<const Expression*> parts_after(const Item& item) const {
    const Expression& expression = *item.expression;
    const auto progress = static_cast<std::size_t>(item.progress);
    std::vector<const Expression*> parts;
    switch (expression.kind) {
      case Expression::Kind::rule:
        if (progress == 0) parts.push_back(&grammar_.rules[static_cast<std::size_t>(expression.rule)].body);
        break;
      case Expression::Kind::sequence:
        if (progress < expression.parts.size()) parts.push_back(&expression.parts[progress]);
        break;
      case Expression::Kind::choice:
        for (const Expression& part : expression.parts) {
          if (progress == 0) parts.push_back(&part);
        }
        break;
      case Expression::Kind::repeat:
        if (expression.most < 0 || item.progress < expression.most) parts.push_back(&expression.parts[0]);
        break;
      default:
        break;
    }
    return parts;
  }

  const Grammar& grammar_;
  std::vector<Column> columns_;                               // one before each code point, and one at the end
  std::set<std::pair<const Expression*, std::size_t>> done_;  // what ends at the last column, with its origin
};

}  // namespace tandem
