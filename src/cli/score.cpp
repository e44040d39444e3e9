// tandem score: log-probability of every token of the text on stdin, and its perplexity.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/error.h"
#include "src/cli/backend_argument.h"
#include "src/cli/commands.h"
#include "src/cli/model_argument.h"
#include "src/cli/terminal.h"
#include "src/engine/scoring.h"

namespace tandem {
namespace {

struct Arguments {
  std::string model, kv_cache;
  BackendArgument where;
  bool json = false;
};

int run(const Arguments& a) {
  const ModelFile model = open_model(model_argument(a.model));
  const std::vector<TokenId> ids = model.tokenizer->encode_prompt(read_all_stdin(), Specials::parse);
  const std::unique_ptr<ThreadPool> pool = a.where.pool();
  const std::unique_ptr<Backend> backend = a.where.backend(*pool);
  ProgressBar bar("score");
  const auto kv_cache = a.kv_cache.empty() ? std::nullopt : std::optional(kv_type_of(a.kv_cache));
  const Scores scores = score(
      model, *backend, ids, [&](int done, int total) { bar.show(done, total); }, kv_cache);
  if (a.json) {
    nlohmann::ordered_json logprobs = nlohmann::ordered_json::array();
    for (const double value : scores.logprobs)
      logprobs.push_back(std::isnan(value) ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value));
    nlohmann::ordered_json json = {{"ids", ids}, {"logprobs", logprobs}, {"argmax", scores.argmax}};
    json["perplexity"] =
        scores.perplexity ? nlohmann::ordered_json(*scores.perplexity) : nlohmann::ordered_json(nullptr);
    const std::optional<Device> device = backend->device();
    json["backend"] = backend->name();
    json["device"] = device ? nlohmann::ordered_json(device->name) : nlohmann::ordered_json(nullptr);
    return write_json(json, false) ? 0 : 1;
  }
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out += fmt::format("{:>9}  {:>7}  {}\n",
                       std::isnan(scores.logprobs[i]) ? "-" : fmt::format("{:.4f}", scores.logprobs[i]), ids[i],
                       model.tokenizer->vocabulary().tokens[ids[i]]);
  }
  out += scores.perplexity ? fmt::format("perplexity {:.4f} over {} tokens ({})\n", *scores.perplexity, ids.size() - 1,
                                         backend->name())
                           : "no perplexity: a text of one token has nothing to predict\n";
  return write_stdout(out) ? 0 : 1;
}

}  // namespace

void add_score(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("score", "Log-probabilities and perplexity of the text on stdin");
  command->add_option("--model", a->model, "GGUF file, or its bare name in the model folder")->required();
  a->where.add_to(*command);
  command->add_option("--kv-cache", a->kv_cache, "Type of the cached keys and values; f16 if not given")
      ->check(CLI::IsMember({"f32", "f16", "q8_0"}));
  command->add_flag("--json", a->json, "Print {\"ids\", \"logprobs\", \"argmax\", \"perplexity\"}");
  command->footer(
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: tandem score --model smollm2-135m-instruct-q4_1.gguf < README.md");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
