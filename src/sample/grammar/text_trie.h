// A set of plain texts as a tree of code points: the strings of JSON that are one of them, and those that are none.
#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "src/sample/grammar/json_rules.h"

namespace tandem {

class TextTrie {
 public:
  // UTF-8. Adding a text twice changes nothing.
  void add(std::string_view text);

  // A quoted string that is one of the texts. Common beginnings are written once, so that few alternatives stand side
  // by side.
  Expression one_of(JsonRules& rules) const;

  // A quoted string that is none of the texts; adds one rule for each node of the tree.
  Expression none_of(JsonRules& rules) const;

 private:
  struct Node {
    std::map<char32_t, int> next;
    bool ends = false;  // a text ends here
  };

  Expression from(int node, JsonRules& rules) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace tandem
