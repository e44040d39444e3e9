// libFuzzer target of the schema compiler: whatever the text is, it becomes a grammar in which every rule exists and
// can be finished, or is refused with Error(config).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/error.h"
#include "src/sample/grammar/json_schema.h"
#include "src/sample/grammar/productive.h"

namespace {

void require_rules(const tandem::Expression& expression, std::size_t rules) {
  if (expression.kind == tandem::Expression::Kind::rule && static_cast<std::size_t>(expression.rule) >= rules)
    std::abort();
  if (expression.kind == tandem::Expression::Kind::repeat && expression.parts.size() != 1) std::abort();
  for (const tandem::Expression& part : expression.parts) require_rules(part, rules);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tandem::Grammar grammar;
  try {
    grammar = tandem::json_schema_grammar(tandem::parse_json_schema({reinterpret_cast<const char*>(data), size}));
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::config) std::abort();
    return 0;
  }
  for (const tandem::GrammarRule& rule : grammar.rules) require_rules(rule.body, grammar.rules.size());
  const std::size_t rules = grammar.rules.size();
  if (!tandem::keep_productive(grammar) || grammar.rules.size() != rules) std::abort();
  return 0;
}
