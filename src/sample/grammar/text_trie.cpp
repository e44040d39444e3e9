#include "src/sample/grammar/text_trie.h"

#include <string>
#include <utility>

#include "src/sample/grammar/code_points.h"
#include "src/sample/grammar/expression.h"
#include "src/text/utf8.h"

namespace tandem {

namespace ex = expressions;

namespace {

Expression spelt(char32_t character, JsonRules& rules) {
  std::string bytes;
  append_utf8(bytes, character);
  return rules.escaped(ex::literal(std::move(bytes)));
}

}  // namespace

void TextTrie::add(std::string_view text) {
  int node = 0;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const auto [child, fresh] = nodes_[static_cast<std::size_t>(node)].next.emplace(step.character, nodes_.size());
    node = child->second;
    if (fresh) nodes_.emplace_back();
    text.remove_prefix(step.length);
  }
  nodes_[static_cast<std::size_t>(node)].ends = true;
}

Expression TextTrie::from(int start, JsonRules& rules) const {
  // Where the tree does not fork it is walked, not recursed into: a text may be long.
  std::vector<Expression> parts;
  const Node* node = &nodes_[static_cast<std::size_t>(start)];
  while (node->next.size() == 1 && !node->ends) {
    const auto& [character, child] = *node->next.begin();
    parts.push_back(spelt(character, rules));
    node = &nodes_[static_cast<std::size_t>(child)];
  }
  std::vector<Expression> branches;
  for (const auto& [character, child] : node->next) {
    branches.push_back(ex::sequence({spelt(character, rules), from(child, rules)}));
  }
  if (node->ends) branches.push_back(ex::literal(""));
  parts.push_back(ex::choice(std::move(branches)));
  return ex::sequence(std::move(parts));
}

Expression TextTrie::one_of(JsonRules& rules) const { return rules.quoted(from(0, rules)); }

Expression TextTrie::none_of(JsonRules& rules) const {
  std::vector<int> rule_of(nodes_.size());
  for (int& rule : rule_of) rule = rules.add_rule("other text");
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    CodePoints known;
    std::vector<Expression> branches;
    for (const auto& [character, child] : nodes_[i].next) {
      known.push_back({character, character});
      branches.push_back(ex::sequence({spelt(character, rules), ex::rule(rule_of[static_cast<std::size_t>(child)])}));
    }
    branches.push_back(ex::sequence({rules.character_in(complement(known)), ex::repeat(rules.character(), 0, -1)}));
    if (!nodes_[i].ends) branches.push_back(ex::literal(""));
    rules.set_body(rule_of[i], ex::choice(std::move(branches)));
  }
  return rules.quoted(ex::rule(rule_of[0]));
}

}  // namespace tandem
