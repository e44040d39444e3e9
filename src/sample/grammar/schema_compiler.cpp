#include "src/sample/grammar/schema_compiler.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "src/base/error.h"
#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/productive.h"
#include "src/sample/grammar/regex.h"
#include "src/sample/grammar/schema_apart.h"
#include "src/sample/grammar/schema_object.h"
#include "src/sample/grammar/string_formats.h"
#include "src/sample/grammar/text_trie.h"

namespace tandem {
namespace {

namespace ex = expressions;

constexpr std::int64_t kMostNodes = 1'000'000;
constexpr std::size_t kMostFirstItems = 128;

void check_size(const Grammar& grammar) {
  std::int64_t nodes = 0;
  for (const GrammarRule& rule : grammar.rules) nodes += std::min(kMostNodes, expanded_size(rule.body));
  if (nodes > kMostNodes) {
    fail(ErrorKind::config, "#: the grammar is larger than {} characters once repetitions are written out", kMostNodes);
  }
}

}  // namespace

Grammar SchemaCompiler::compile() {
  const int root = rules_.add_rule("root");
  rules_.set_body(root, value_of({SchemaDocument::kRoot}));
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Task task = tasks_[i];
    std::vector<Expression> branches;
    for (const Conjunction& one : document_.alternatives(task.all)) {
      branches.push_back(alternative(shape_of(document_, one)));
    }
    rules_.set_body(task.rule, ex::choice(std::move(branches)));
  }
  // Proofs meet further oneOf lists.
  for (std::size_t i = 0; i < document_.one_ofs().size(); ++i) {
    require_branches_apart(document_, document_.one_ofs()[i]);
  }
  grammar_.root = root;
  if (!keep_productive(grammar_)) fail(ErrorKind::config, "#: no finite value satisfies this schema");
  check_size(grammar_);
  return std::move(grammar_);
}

Expression SchemaCompiler::value_of(const Conjunction& all) {
  const Conjunction simple = document_.simplified(all);
  if (simple.empty()) return rules_.any_value();
  Conjunction key = simple;
  std::sort(key.begin(), key.end());
  const auto known = known_.find(key);
  if (known != known_.end()) return ex::rule(known->second);
  std::string name;
  for (const int node : simple) name += (name.empty() ? "" : " & ") + document_.pointer(node);
  const int rule = rules_.add_rule(std::move(name));
  known_.emplace(std::move(key), rule);
  tasks_.push_back({simple, rule});
  return ex::rule(rule);
}

Expression SchemaCompiler::alternative(const Shape& shape) {
  if (shape.values) return listed_values(shape);
  std::vector<Expression> types;
  const auto add = [&](unsigned type, auto&& expression) {
    if ((shape.types & type) != 0) types.push_back(expression());
  };
  add(kObjectType, [&] { return object_value(shape); });
  add(kArrayType, [&] { return array_value(shape); });
  add(kStringType, [&] { return string_value(shape); });
  add(kNumberTypes, [&] { return number_in(shape.numbers, rules_, shape.number_place); });
  add(kBooleanType, [&] { return rules_.boolean(); });
  add(kNullType, [&] { return rules_.null(); });
  return ex::choice(std::move(types));
}

Expression SchemaCompiler::listed_values(const Shape& shape) {
  std::vector<Expression> branches;
  TextTrie texts;
  bool any_text = false;
  for (const auto& value : *shape.values) {
    const std::optional<bool> admitted = admits(shape, value);
    if (!admitted) {
      const unsigned type = type_of(value);
      fail(ErrorKind::config, "{}: not supported together with enum or const",
           type == kStringType  ? shape.string_place
           : type == kArrayType ? shape.array_place
                                : shape.object_place);
    }
    if (!*admitted) continue;
    if (value.is_string()) {
      texts.add(value.get_ref<const std::string&>());
      any_text = true;
    } else {
      branches.push_back(rules_.exactly(value));
    }
  }
  if (any_text) branches.push_back(texts.one_of(rules_));
  return ex::choice(std::move(branches));
}

Expression SchemaCompiler::string_value(const Shape& shape) {
  if (shape.string_place.empty()) return rules_.string();
  if (shape.length.most >= 0 && shape.length.least > shape.length.most) return ex::choice({});
  if (shape.patterns.empty() && shape.formats.empty()) {
    return rules_.quoted(
        ex::repeat(rules_.character(), static_cast<int>(shape.length.least), static_cast<int>(shape.length.most)));
  }
  if (shape.patterns.size() + shape.formats.size() > 1) {
    fail(ErrorKind::config, "{}: not supported together with {}", shape.string_place,
         shape.patterns.empty() ? shape.formats[0].place : shape.patterns[0].place);
  }
  const bool has_pattern = !shape.patterns.empty();
  const PlacedText& source = has_pattern ? shape.patterns[0] : shape.formats[0];
  Expression text = has_pattern ? regex_expression(source.text, RegexMatch::search, source.place)
                                : string_format(source.text, source.place);
  if (!limit_length(text, shape.length)) {
    fail(ErrorKind::config,
         "{}: minLength and maxLength are supported here only where one repetition of the pattern decides the length",
         source.place);
  }
  return rules_.quoted(rules_.escaped(text));
}

Expression SchemaCompiler::array_value(const Shape& shape) {
  if (shape.array_place.empty()) return rules_.array();
  const ArrayItems items = items_of(document_, shape);
  if (items.first.size() > kMostFirstItems) {
    fail(ErrorKind::config, "{}: {} prefixItems; at most {}", shape.array_place, items.first.size(), kMostFirstItems);
  }
  const auto least = static_cast<int>(shape.items.least), most = static_cast<int>(shape.items.most);
  if (most >= 0 && least > most) return ex::choice({});
  if (most == 0) return ex::literal("[]");
  // From the last element to the first: what follows the first i elements.
  auto first = static_cast<int>(items.first.size());
  if (most >= 0) first = std::min(first, most);
  const int from = std::max(first, 1);
  const Expression other = value_of(items.others);
  Expression rest =
      ex::repeat(ex::sequence({rules_.comma(), other}), std::max(0, least - from), most < 0 ? -1 : most - from);
  for (int i = from; i-- > 0;) {
    const Expression element = i < first ? value_of(items.first[static_cast<std::size_t>(i)]) : other;
    rest = ex::sequence({i > 0 ? rules_.comma() : ex::literal(""), element, std::move(rest)});
    if (i > 0 && i >= least) rest = ex::optional(std::move(rest));
  }
  return rules_.enclosed('[', std::move(rest), least == 0, ']');
}

Expression SchemaCompiler::object_value(const Shape& shape) {
  if (shape.object_place.empty()) return rules_.object();
  const TextLength counts = shape.properties;
  if (counts.most >= 0 && counts.least > counts.most) return ex::choice({});
  return object_of(
      members_of(document_, shape), counts, rules_, [this](const Conjunction& all) { return value_of(all); },
      shape.object_place);
}

}  // namespace tandem
