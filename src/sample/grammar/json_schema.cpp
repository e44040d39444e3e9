#include "src/sample/grammar/json_schema.h"

#include <set>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/sample/grammar/json_rules.h"
#include "src/sample/grammar/productive.h"
#include "src/sample/grammar/schema_compiler.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 64;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

// Follows the parser: refuses what is too deep before it is built, and a name that an object has already, of which the
// parser would keep one.
class DocumentRules {
 public:
  explicit DocumentRules(const std::string& name) : name_(name) {}

  void see(int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kDeepest) fail(ErrorKind::config, "{}: nested deeper than {}", name_, kDeepest);
    if (event == Json::parse_event_t::object_start) {
      names_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      names_.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const std::string& key = value.get_ref<const std::string&>();
      if (!names_.back().insert(key).second)
        fail(ErrorKind::config, "{}: an object has the name '{}' twice", name_, key);
    }
  }

 private:
  const std::string& name_;
  std::vector<std::set<std::string>> names_;  // of the objects that are open
};

// The part of the parser's message after its own name and number: "at line 1, column 5: ...".
std::string_view reason(std::string_view message) {
  const std::size_t at = message.find(" at line ");
  return at == std::string_view::npos ? message : message.substr(at + 4);
}

}  // namespace

Json parse_json_schema(std::string_view text, const std::string& name) {
  if (text.size() > kMostBytes) {
    fail(ErrorKind::config, "{}: {} bytes of text; at most {}", name, text.size(), kMostBytes);
  }
  DocumentRules rules(name);
  try {
    return Json::parse(text, [&rules](int depth, Json::parse_event_t event, Json& value) {
      rules.see(depth, event, value);
      return true;
    });
  } catch (const Json::exception& error) {
    fail(ErrorKind::config, "{}: not JSON, {}", name, reason(error.what()));
  }
}

Grammar json_schema_grammar(const Json& schema, const std::string& name) {
  try {
    return SchemaCompiler(schema).compile();
  } catch (const Error& error) {
    throw Error(error.kind(), name + ": " + error.what());
  }
}

Grammar any_json_grammar() {
  Grammar grammar;
  JsonRules rules(grammar);
  const Expression value = rules.any_value();
  grammar.root = value.rule;
  keep_productive(grammar);
  return grammar;
}

}  // namespace tandem
