#include "src/engine/constraints.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "src/base/error.h"
#include "src/sample/grammar/choices.h"
#include "src/sample/grammar/gbnf.h"
#include "src/sample/grammar/grammar_constraint.h"
#include "src/sample/grammar/json_schema.h"
#include "src/sample/grammar/regex.h"

namespace tandem {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{4} << 20;
constexpr std::size_t kMostShown = 60;  // bytes of a regular expression or of choices in a name

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMostFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in && !in.eof()) fail(ErrorKind::file, "{}: cannot be read", path);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMostFileBytes) {
    fail(ErrorKind::config, "{}: expected at most {} bytes, got more", path, kMostFileBytes);
  }
  return text;
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string shortened(std::string text) {
  if (text.size() <= kMostShown) return text;
  text.resize(kMostShown);
  return text + "...";
}

Grammar read_grammar(const ConstraintConfig& constraint) {
  if (!constraint.grammar.empty()) return parse_gbnf(read_text(constraint.grammar), file_name(constraint.grammar));
  if (!constraint.json_schema.empty()) {
    const std::string name = file_name(constraint.json_schema);
    return json_schema_grammar(parse_json_schema(read_text(constraint.json_schema), name), name);
  }
  if (constraint.json) return any_json_grammar();
  if (constraint.regex) {
    return {.rules = {{"root", regex_expression(*constraint.regex, RegexMatch::whole, "constraint.regex")}}, .root = 0};
  }
  return choices_grammar(constraint.choices);
}

std::string name_of(const ConstraintConfig& constraint) {
  const std::string_view kind = constraint.kind();
  if (kind == "grammar") return fmt::format("grammar {}", file_name(constraint.grammar));
  if (kind == "json_schema") return fmt::format("json_schema {}", file_name(constraint.json_schema));
  if (kind == "regex") return fmt::format("regex {}", shortened(*constraint.regex));
  if (kind == "choices")
    return fmt::format("choices {}", shortened(fmt::format("{}", fmt::join(constraint.choices, ", "))));
  return std::string(kind);
}

}  // namespace

ConfiguredConstraint::ConfiguredConstraint(const Config& config, const Tokenizer& tokenizer, const TokenMask& usable,
                                           const std::vector<TokenId>& end_ids)
    : name_(name_of(config.constraint)) {
  const std::string where = fmt::format("constraint.{}", config.constraint.kind());
  masks_ = std::make_shared<TokenMasks>(read_grammar(config.constraint), where,
                                        std::make_shared<VocabularyTrie>(tokenizer, usable), usable, end_ids);
}

std::shared_ptr<Constraint> ConfiguredConstraint::make() const { return std::make_shared<GrammarConstraint>(masks_); }

}  // namespace tandem
