// What the masks of a constraint cost on a real vocabulary: the first one of a grammar, those of new states and those
// that are known, along walks of tokens drawn from the masks and along a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/mapped_file.h"
#include "src/base/stopwatch.h"
#include "src/engine/model_files.h"
#include "src/engine/session.h"
#include "src/sample/grammar/choices.h"
#include "src/sample/grammar/gbnf.h"
#include "src/sample/grammar/grammar_constraint.h"

namespace tandem {
namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> grammars;
  int walks = 20, tokens = 200;
  std::uint64_t seed = 1;
};

struct Subject {
  std::string name;
  Grammar grammar;
  std::vector<std::string> texts{};  // that it matches
};

constexpr const char* kJson = R"(root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ws ("," ws string ":" ws value ws)*)? "}"
array ::= "[" ws (value ws ("," ws value ws)*)? "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws ::= ([ \n] [ ]{0,20})?)";

constexpr const char* kPerson =
    R"(root ::= "{\"name\": " string ", \"age\": " [1-9] [0-9]{0,2} ", \"tags\": [" (string (", " string){0,9})? "]}"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt]){0,100} "\"")";

constexpr const char* kText =
    "{\"name\": \"Ada Lovelace\", \"born\": 1815, \"tags\": [\"mathematics\", \"caf\xC3\xA9\", "
    "\"\xE4\xBD\xA0\xE5\xA5\xBD\"], \"notes\": {\"quote\": \"It said: \\\"yes\\\".\\n\", \"score\": -1.5e3, \"ok\": "
    "true}}";

std::vector<Subject> built_in() {
  std::vector<std::string> countries;
  for (int i = 0; i < 200; ++i) countries.push_back(fmt::format("country number {}", i * 7919 % 1000));
  return {{"any JSON", parse_gbnf(kJson, "json"), {kText}},
          {"object with bounded strings", parse_gbnf(kPerson, "person")},
          {"200 choices", choices_grammar(countries)},
          {"identifier list", parse_gbnf("root ::= id (\", \" id)*\nid ::= [a-zA-Z_] [a-zA-Z0-9_]*", "ids")},
          {"letters of any script", parse_gbnf("root ::= [^\\x00-@[-`{-\\x7f]+ \".\"", "letters")},
          {"any text of 1000 characters", parse_gbnf("root ::= .{1,1000} \"END\"", "text")}};
}

struct Costs {
  std::vector<double> all, fresh;  // seconds
};

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Asks for the mask behind each token, and notes whether its state had come up before.
class Walker {
 public:
  explicit Walker(TokenMasks& masks) : masks_(masks) {}

  const TokenMask& ask(int state) {
    const std::size_t size = seen_.size();
    if (static_cast<std::size_t>(state) >= size) seen_.resize(static_cast<std::size_t>(state) + 1);
    const bool is_new = !seen_[static_cast<std::size_t>(state)];
    seen_[static_cast<std::size_t>(state)] = true;
    const double start = now_seconds();
    const TokenMask& mask = masks_.mask(state);
    const double seconds = now_seconds() - start;
    costs.all.push_back(seconds);
    if (is_new) costs.fresh.push_back(seconds);
    return mask;
  }

  void walk_at_random(std::mt19937_64& random, int tokens, TokenId end) {
    int state = masks_.automaton().start();
    for (int i = 0; i < tokens && state != TokenMasks::kOver && !masks_.automaton().complete(state); ++i) {
      const TokenMask& mask = ask(state);
      std::int64_t count = 0;
      for (const TokenRun& run : mask.runs()) count += run.end - run.begin;
      if (count == 0) return;
      auto place = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
      TokenId token = end;
      for (const TokenRun& run : mask.runs()) {
        if (place < run.end - run.begin) {
          token = run.begin + static_cast<TokenId>(place);
          break;
        }
        place -= run.end - run.begin;
      }
      if (token != end) state = masks_.after(state, token);
    }
  }

  void walk_along(const std::vector<TokenId>& ids, const std::string& text) {
    int state = masks_.automaton().start();
    for (const TokenId id : ids) {
      if (!ask(state).allows(id)) fail(ErrorKind::input, "the grammar does not match its text: {}", text);
      state = masks_.after(state, id);
    }
    ask(state);
  }

  Costs costs;

 private:
  TokenMasks& masks_;
  std::vector<bool> seen_;
};

void run(const Arguments& a) {
  const ModelFile model = open_model(find_model(a.model, ".", ErrorKind::usage));
  std::vector<Subject> subjects = built_in();
  for (const std::string& path : a.grammars) {
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    subjects.push_back({path, parse_gbnf(text, path)});
  }
  const TokenMask usable = usable_tokens(model);
  const double start = now_seconds();
  const auto trie = std::make_shared<const VocabularyTrie>(*model.tokenizer, usable);
  fmt::print("{}: {} tokens of text in {} nodes, {:.1f} MB, made in {:.0f} ms (once a model)\n", model.file->name(),
             trie->ordered().size(), trie->nodes().size(), static_cast<double>(trie->bytes()) / 1e6,
             1e3 * (now_seconds() - start));
  fmt::print("milliseconds{:<20}{:>9}{:>9} |{:>8}{:>9}{:>9}{:>9} |{:>8}{:>9}{:>9} |{:>7}\n", "", "compile", "first",
             "masks", "median", "99 %", "worst", "new", "median", "99 %", "MB");
  const std::vector<TokenId> ends = end_ids(model.tokenizer->vocabulary());
  for (const Subject& subject : subjects) {
    const double begin = now_seconds();
    TokenMasks masks(subject.grammar, subject.name, trie, usable, ends);
    const double compiled = now_seconds();
    Walker walker(masks);
    walker.ask(masks.automaton().start());
    const double first = now_seconds();
    std::mt19937_64 random(a.seed);
    for (int i = 0; i < a.walks; ++i) walker.walk_at_random(random, a.tokens, ends.empty() ? -1 : ends.front());
    for (const std::string& text : subject.texts) {
      walker.walk_along(model.tokenizer->encode(text, Specials::literal), text);
    }
    const Costs& costs = walker.costs;
    fmt::print("{:<32}{:>9.2f}{:>9.2f} |{:>8}{:>9.4f}{:>9.3f}{:>9.2f} |{:>8}{:>9.3f}{:>9.2f} |{:>7.1f}\n", subject.name,
               1e3 * (compiled - begin), 1e3 * (first - begin), costs.all.size(), 1e3 * percentile(costs.all, 0.5),
               1e3 * percentile(costs.all, 0.99), 1e3 * percentile(costs.all, 1), costs.fresh.size(),
               1e3 * percentile(costs.fresh, 0.5), 1e3 * percentile(costs.fresh, 0.99),
               static_cast<double>(masks.bytes()) / 1e6);
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::Arguments a;
  CLI::App program("What the masks of a constraint cost on a model's vocabulary");
  program.add_option("--model", a.model, "GGUF file, or its name in the model folder")->required();
  program.add_option("--grammar", a.grammars, "GBNF file to time besides the built-in ones");
  program.add_option("--walks", a.walks, "Random texts of each grammar")->check(CLI::Range(0, 100000));
  program.add_option("--tokens", a.tokens, "Most tokens of each")->check(CLI::Range(1, 100000));
  program.add_option("--seed", a.seed);
  program.footer("Example: grammar_bench --model qwen2.5-coder-1.5b-instruct-q4_k_m.gguf");
  CLI11_PARSE(program, argc, argv);
  try {
    tandem::run(a);
  } catch (const std::exception& error) {
    fmt::print(stderr, "grammar_bench: {}\n", error.what());
    return 1;
  }
}
