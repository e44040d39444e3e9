// tandem trace: one answer, every step of it from text to ids to stages to logits to probabilities to the draw.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/cli/terminal.h"
#include "src/engine/session.h"
#include "src/engine/trace_text.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string config, prompt;
  std::vector<std::string> overrides;
  int top = 5, steps = 4;
  bool json = false, reference = false;
};

// Prints events as they happen. A reader that has gone ends the run.
class Printer {
 public:
  Printer(const Arguments& arguments, const Session& session) : json_(arguments.json), session_(session) {}

  void prompt(const std::string& text, std::span<const TokenId> ids) const {
    const Config& config = session_.config();
    if (json_) {
      write_line({{"event", "prompt"},
                  {"text", text},
                  {"chat", session_.chat()},
                  {"tokens", tokens_json(ids, session_.tokenizer())},
                  {"target", session_.target().file->name()},
                  {"draft_kind", config.draft.kind},
                  {"draft", session_.draft() != nullptr ? Json(session_.draft()->file->name()) : Json(nullptr)},
                  {"rule", config.verify.rule},
                  {"lossless", session_.lossless()},
                  {"temperature", config.sampling.temperature},
                  {"seed", session_.seed()},
                  {"backend", session_.backend().name()}});
      return;
    }
    std::string heading = fmt::format("target: {} ({})\n", session_.target().file->name(), session_.backend().name());
    heading += fmt::format("draft: {}{}; rule {}{}, temperature {}, seed {}\n\n", config.draft.kind,
                           session_.draft() != nullptr ? " " + session_.draft()->file->name() : "", config.verify.rule,
                           session_.lossless() ? "" : " (lossy)", config.sampling.temperature, session_.seed());
    write(heading + prompt_text(ids, session_.tokenizer()));
  }

  void prefill(const PrefillTrace& prefill) const {
    json_ ? write_line(to_json(prefill)) : write("\n" + to_text(prefill));
  }

  void step(const StepTrace& step) const {
    json_ ? write_line(to_json(step, session_.tokenizer())) : write("\n" + to_text(step, session_.tokenizer()));
  }

  // `text` is what is certain of an answer that goes on.
  void end(const GenerationResult& result, const std::string& text) const {
    const bool ended = result.stop_reason != StopReason::none;
    if (json_) {
      write_line({{"event", "end"},
                  {"ids", result.ids},
                  {"text", text},
                  {"stop_reason", ended ? Json(name_of(result.stop_reason)) : Json(nullptr)}});
      return;
    }
    write(fmt::format(
        "\nanswer{}: {} tokens; {}\n{}\n", ended ? "" : " so far", result.ids.size(),
        ended ? fmt::format("stop reason: {}", name_of(result.stop_reason)) : "it goes on, --steps shows more", text));
  }

 private:
  static void write(std::string_view text) {
    if (!write_stdout(text)) request_stop();
  }
  static void write_line(const Json& json) {
    if (!write_json(json, false)) request_stop();
  }

  bool json_;
  const Session& session_;
};

int run(const Arguments& a) {
  Options options = Options::from_file(a.config);
  for (const std::string& assignment : a.overrides) options.set(assignment);
  Config config = read_config(std::move(options));
  interrupted();
  Session session(std::move(config), a.reference);
  warn(session.warning());
  if (const std::string warning = session.marker_warning(a.prompt); !warning.empty()) warn(warning);
  const std::vector<TokenId> ids =
      session.chat() ? session.encode_chat({{"user", a.prompt}}) : session.encode_raw(a.prompt);
  Generation generation(session.engine(), session.tokenizer(), ids, session.stop_rules(&interrupted()));
  Tracer tracer(session.engine(), generation, a.top);
  const Printer print(a, session);

  print.prompt(a.prompt, ids);
  while (const auto prefill = tracer.prefill()) print.prefill(*prefill);
  for (int i = 0; i <= a.steps; ++i) {  // the first token is no step
    const auto step = tracer.advance();
    if (const std::string warning = session.engine().drafter().take_warning(); !warning.empty()) warn(warning);
    if (!step) break;
    print.step(*step);
  }
  print.end(generation.result(), generation.take_text());
  return generation.result().stop_reason == StopReason::cancel ? 130 : 0;
}

}  // namespace

void add_trace(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "trace", "Every step of an answer: ids, stage shapes and norms, logits, probabilities, proposal tree, draw");
  command->add_option("--config", a->config, "YAML file; see `tandem config --help` for its keys")->required();
  command->add_option("--set", a->overrides, "Override a key: --set draft.length=6 (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--prompt", a->prompt, "The prompt: a user's turn in a chat, raw text otherwise")->required();
  command->add_option("--top", a->top, "Logits and probabilities to show of each row")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--steps", a->steps, "Steps after the first token; stop.max_tokens may end it before")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_flag("--json", a->json, "Print JSON lines: a prompt, prefills, steps (0 is the first token), an end");
  command->add_flag("--reference", a->reference, "F32 weights, activations and cache: slow, for checks");
  command->footer(
      "q: the probability that a draft was drawn with. p: the target's own, after penalties, temperature, top-k, "
      "top-p\n"
      "and min-p. A correction is drawn where no draft stood, a bonus after a path that stood to its end.\n"
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: tandem trace --config configs/quickstart.yaml --set sampling.temperature=1 --prompt \"Name a river.\"");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
