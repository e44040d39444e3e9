// A schema document as grammar rules, one for each conjunction of subschemas that a value may have to satisfy.
#pragma once
#include <cstddef>
#include <map>
#include <vector>

#include "src/sample/grammar/json_rules.h"
#include "src/sample/grammar/schema_document.h"
#include "src/sample/grammar/schema_shape.h"

namespace tandem {

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const nlohmann::ordered_json& schema) : document_(schema), rules_(grammar_) {}

  // Throws Error(config) that begins with a JSON pointer. To be called once.
  Grammar compile();

 private:
  Expression value_of(const Conjunction& all);
  Expression alternative(const Shape& shape);
  Expression listed_values(const Shape& shape);
  Expression string_value(const Shape& shape);
  Expression array_value(const Shape& shape);
  Expression object_value(const Shape& shape);

  SchemaDocument document_;
  Grammar grammar_;
  JsonRules rules_;
  std::map<Conjunction, int> known_;  // the rule of each conjunction, its nodes sorted
  struct Task {
    Conjunction all;
    int rule;
  };
  std::vector<Task> tasks_;  // in the order of discovery; a rule's body is written after it is first referred to
};

}  // namespace tandem
