// The schema compiler for json_schema_compare.py: one JSON request a line on stdin, one answer a line on stdout.
//
// request: {"schema": text of a schema, "texts": [text, ...], "samples": how many, "seed": number}
// answer:  {"matches": [bool for each text], "samples": [texts drawn from the grammar]}, or {"error": message}
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/sample/grammar/json_schema.h"
#include "tests/sample/grammar_recogniser.h"
#include "tests/sample/grammar_sampler.h"

namespace {

nlohmann::json answer(const nlohmann::json& request) {
  tandem::Grammar grammar;
  try {
    grammar = tandem::json_schema_grammar(tandem::parse_json_schema(request.at("schema").get<std::string>()));
  } catch (const tandem::Error& error) {
    return {{"error", error.what()}};
  }
  nlohmann::json result{{"matches", nlohmann::json::array()}, {"samples", nlohmann::json::array()}};
  tandem::GrammarRecogniser recogniser(grammar);
  for (const auto& text : request.at("texts")) result["matches"].push_back(recogniser.matches(text.get<std::string>()));
  tandem::GrammarSampler sampler(grammar, request.at("seed").get<std::uint64_t>());
  for (int i = 0; i < request.at("samples").get<int>(); ++i) {
    result["samples"].push_back(sampler.text(static_cast<std::size_t>(20 + 30 * i)));
  }
  return result;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(nlohmann::json::parse(line)).dump() << "\n";
  }
}
