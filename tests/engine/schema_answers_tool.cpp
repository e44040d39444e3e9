// Answers of a tiny random model under JSON schemas for schema_answers.py: one JSON request a line on stdin, one answer
// a line on stdout.
//
// request: {"schema": text of a schema, "seed": number, "ways": how many answers, each drafted and drawn another way}
// answer:  {"answers": [{"way": text for people, "text", "stop_reason", "proposed", "accepted", "forced": numbers,
//                        "fits": whether the schema has a value that begins with the text,
//                        "plain": the text without drafts, null where the rule does not promise that one}]},
//          or {"error": message}
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/engine/session.h"
#include "src/sample/grammar/json_schema.h"
#include "src/text/utf8.h"
#include "tests/engine/session_models.h"
#include "tests/sample/grammar_recogniser.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem::test {
namespace {

using nlohmann::json;

// All bytes, so that a token may be a part of a character, and tokens that cross the borders of JSON's parts.
Vocabulary byte_vocabulary() {
  Vocabulary v = tandem::tiny_vocabulary("qwen2", {{"\"", ":"},
                                                   {"{", "\""},
                                                   {"\"", "}"},
                                                   {"\"", ","},
                                                   {",", "\""},
                                                   {"[", "]"},
                                                   {"t", "r"},
                                                   {"u", "e"},
                                                   {"tr", "ue"},
                                                   {"n", "u"},
                                                   {"l", "l"},
                                                   {"nu", "ll"},
                                                   {"\xC3", "\xA9"},
                                                   {"\xA9", "\""},
                                                   {"a", "b"},
                                                   {"0", "0"},
                                                   {"\\", "u"}});
  v.bos = add(v, "<|endoftext|>", TokenType::control);
  v.eos = add(v, "<|im_end|>", TokenType::control);
  return v;
}

// What ends a value is likelier than a random model would have it, and what begins one less likely: few answers go on
// for ever.
double bias_of(std::string_view text) {
  if (text.empty()) return 0;
  if (std::string_view(",{[\\ \n").find(text.front()) != std::string_view::npos) return -4;
  return std::string_view("\"}]").find(text.back()) != std::string_view::npos ? 7 : 0;
}

struct Way {
  std::string kind, rule;
  double temperature;
  int length;

  // Of each number another one: all kinds, rules and temperatures together come up within 36 numbers.
  explicit Way(int number) {
    constexpr std::array kKinds{"ngram", "recycle", "model", "hybrid"};
    constexpr std::array kRules{"rejection", "block", "coupled"};
    constexpr std::array kTemperatures{0.0, 0.7, 1.5};
    const auto place = static_cast<std::size_t>(number % 36 * 7 % 36);
    kind = kKinds[place % 4];
    rule = kRules[place / 4 % 3];
    temperature = kTemperatures[place / 12];
    length = 1 + number % 7;
  }
  bool is_plain_text() const { return temperature == 0 || rule == "coupled"; }
};

class Answers : private SessionModels {
 public:
  Answers() {
    TinyOptions options = small_options();
    options.vocabulary = byte_vocabulary();
    options.rows = options.vocabulary.size() + 3;
    write_pair(options);
    options.vocabulary = other_tiny_vocabulary();
    options.rows = options.vocabulary.size();
    foreign_draft_ = write_tiny_model(folder_, "foreign.gguf", options);
  }

  json of(const json& request) const {
    const std::string schema = request.at("schema").get<std::string>();
    const int seed = request.at("seed").get<int>(), ways = request.at("ways").get<int>();
    try {
      const Session session(config(schema, seed % 2 == 1));
      const Grammar grammar = json_schema_grammar(parse_json_schema(schema));
      std::map<double, std::string> plain;  // by temperature: under every rule one text a seed
      json answers = json::array();
      for (int i = 0; i < ways; ++i) {
        const Way way(seed * ways + i);
        const GenerationResult result = answer(session, way, way.kind, seed);
        json said = {{"way", fmt::format("{} drafts of {}, {}, temperature {}", way.kind, way.length, way.rule,
                                         way.temperature)},
                     {"text", to_valid_utf8(result.text)},
                     {"stop_reason", name_of(result.stop_reason)},
                     {"proposed", result.metrics.total.proposed},
                     {"accepted", result.metrics.total.accepted},
                     {"forced", result.metrics.by_source[static_cast<std::size_t>(DraftSource::grammar)].accepted},
                     {"fits", GrammarRecogniser(grammar).begins(whole_characters(result.text))},
                     {"plain", nullptr}};
        if (way.is_plain_text()) {
          if (!plain.contains(way.temperature)) {
            plain[way.temperature] = to_valid_utf8(answer(session, way, "none", seed).text);
          }
          said["plain"] = plain[way.temperature];
        }
        answers.push_back(std::move(said));
      }
      return {{"answers", answers}};
    } catch (const Error& error) {
      return {{"error", error.what()}};
    }
  }

 private:
  Config config(const std::string& schema, bool foreign) const {
    Options options = Options::from_text(
        "target: {context: 448}\ndraft: {kind: hybrid, length: 4}\nruntime: {threads: 1}\nprompt: {chat: false}\n",
        "schema_answers.yaml");
    options.set("target.model=" + target_);
    options.set("draft.model=" + (foreign ? foreign_draft_ : draft_));
    options.set(fmt::format("draft.retokenize={}", foreign));
    options.set("constraint.json_schema=" + folder_.file("schema.json", schema));
    return read_config(std::move(options));
  }

  static GenerationResult answer(const Session& session, const Way& way, const std::string& kind, int seed) {
    EngineChoice choice = session.configured_engine();
    choice.draft_kind = kind;
    choice.draft_length = way.length;
    choice.max_nodes = 16;
    choice.rule = way.rule;
    choice.seed = static_cast<std::uint64_t>(seed);
    choice.sampling = {.temperature = way.temperature, .top_k = 0, .top_p = 1, .frequency_penalty = 0.5};
    const Vocabulary& vocabulary = session.tokenizer().vocabulary();
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const double bias = id == *vocabulary.eos ? 7 : bias_of(session.tokenizer().bytes(id));
      if (bias != 0) choice.sampling.logit_bias.emplace_back(id, bias);
    }
    Engine engine = session.make_engine(std::move(choice));
    StopRules rules = session.stop_rules();
    rules.max_tokens = 400;
    Generation generation(engine, session.tokenizer(), session.encode_raw("The answer, as JSON: "), rules);
    while (generation.advance()) continue;
    return generation.result();
  }

  // An answer that was cut may end within a character.
  static std::string_view whole_characters(std::string_view text) {
    return text.substr(0, text.size() - incomplete_utf8_tail(text));
  }

  std::string foreign_draft_;
};

}  // namespace
}  // namespace tandem::test

int main() {
  const tandem::test::Answers answers;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answers.of(nlohmann::json::parse(line)).dump() << std::endl;  // who asked waits for it
  }
}
