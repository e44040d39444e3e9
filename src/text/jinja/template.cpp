#include "src/text/jinja/template.h"

#include "src/text/jinja/lexer.h"

namespace tandem::jinja {
namespace {

Tree parse_at(std::string_view source, const std::string& where) {
  try {
    return parse(source);
  } catch (const SyntaxFault& fault) {
    fail(ErrorKind::model, "{}: line {}, column {}: {}", where, fault.place.line, fault.place.column, fault.what);
  }
}

}  // namespace

Template::Template(std::string_view source, std::string where)
    : where_(std::move(where)), tree_(parse_at(source, where_)) {}

MarkedText Template::render(const MakeVariables& make_variables, const Clock& clock, const Limits& limits) const {
  Runtime runtime(limits, clock);
  Interpreter interpreter(runtime);
  try {
    return interpreter.run(tree_.body, make_variables(runtime));
  } catch (const Problem& problem) {
    const Place place = interpreter.place();
    if (place.line == 0) fail(problem.kind(), "{}: {}", where_, problem.what());
    fail(problem.kind(), "{}: line {}, column {}: {}", where_, place.line, place.column, problem.what());
  }
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return parts;
}

}  // namespace tandem::jinja
