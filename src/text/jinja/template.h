// A Jinja template, as Hugging Face's tokenizers render it: trim_blocks, lstrip_blocks, values that never change.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "src/text/jinja/interpreter.h"

namespace tandem::jinja {

class Template {
 public:
  // Throws Error(model) for syntax that is wrong or not supported: `where`, the line and the column come first.
  Template(std::string_view source, std::string where);

  // Makes the variables of a render; the texts it makes are charged to that render.
  using MakeVariables = std::function<Variables(Runtime&)>;

  // Throws Error(input) where the template refuses its variables or they do not fit it, Error(model) where it asks for
  // what is not supported or goes beyond a limit; both with the line and column.
  MarkedText render(const MakeVariables& make_variables, const Clock& clock, const Limits& limits = {}) const;

  const std::set<std::string>& strings() const { return tree_.strings; }  // its string literals

 private:
  std::string where_;
  Tree tree_;
};

// The local time.
std::tm local_time();

}  // namespace tandem::jinja
