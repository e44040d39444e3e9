// tandem tokenize: text bytes on stdin -> token ids.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/cli/commands.h"
#include "src/cli/model_argument.h"
#include "src/cli/terminal.h"
#include "src/engine/model_files.h"

namespace tandem {
namespace {

struct Arguments {
  std::string model;
  bool special = false, bos = false, json = false;
};

int run(const Arguments& a) {
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(model_argument(a.model));
  const std::string text = read_all_stdin();
  const Specials specials = a.special ? Specials::parse : Specials::literal;
  const std::vector<TokenId> ids = a.bos ? tokenizer->encode_prompt(text, specials) : tokenizer->encode(text, specials);
  if (a.json) {
    nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
    for (const TokenId id : ids) pieces.push_back(tokenizer->vocabulary().tokens[id]);
    return write_json({{"ids", ids}, {"pieces", pieces}}, false) ? 0 : 1;
  }
  std::string out;
  for (const TokenId id : ids) out += fmt::format("{:>7}  {}\n", id, tokenizer->vocabulary().tokens[id]);
  return write_stdout(out) ? 0 : 1;
}

}  // namespace

void add_tokenize(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("tokenize", "Token ids of the text on stdin");
  command->add_option("--model", a->model, "GGUF file, or its bare name in the model folder; or a tokenizer.model file")
      ->required();
  command->add_flag("--special", a->special, "Text that spells a control token becomes that token");
  command->add_flag("--bos", a->bos, "Begin with the begin-of-sequence token when the model asks for one");
  command->add_flag("--json", a->json, "Print {\"ids\": [..], \"pieces\": [..]}");
  command->footer(
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: printf 'Hello world' | tandem tokenize --model smollm2-135m-instruct-q4_1.gguf --json");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
