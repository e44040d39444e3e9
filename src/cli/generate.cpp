// tandem generate: streams an answer to stdout, figures to stderr; or JSON.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/atomic_file.h"
#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/cli/prompts.h"
#include "src/cli/terminal.h"
#include "src/engine/report.h"
#include "src/engine/session.h"
#include "src/engine/session_file.h"

namespace tandem {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string prompt, prompt_file, report_file, session_file;
  PromptChoice prompts;
  bool has_prompt = false, json = false, reference = false, quiet = false;
};

Config load_config(const Arguments& a) {
  Options options = Options::from_file(a.config);
  for (const std::string& assignment : a.overrides) options.set(assignment);
  return read_config(std::move(options));
}

std::string prompt_text(const Arguments& a) {
  if (a.has_prompt) return a.prompt;
  if (!a.prompt_file.empty()) return read_file(a.prompt_file);
  if (is_terminal(0)) say("tandem: reading the prompt from the terminal; Ctrl-D on an empty line ends it\n");
  return read_all_stdin();
}

// Runs one answer. With `stream` text goes to stdout as it becomes certain.
GenerationResult answer(Session& session, std::span<const TokenId> prompt, StopRules rules, bool stream) {
  Generation generation(session.engine(), session.tokenizer(), prompt, std::move(rules));
  {
    ProgressBar bar("prefill");
    while (generation.prefill()) bar.show(generation.prefilled(), generation.prompt_tokens());
  }
  for (bool more = true; more;) {
    more = generation.advance();
    const std::string text = generation.take_text();
    if (const std::string warning = session.engine().drafter().take_warning(); !warning.empty()) {
      warn(warning);
    }
    if (stream && !write_stdout(text)) request_stop();
  }
  return generation.result();
}

// Refuses a report file that cannot be written, before minutes are spent on what goes into it.
void check_report(const Arguments& a) {
  if (!a.report_file.empty() && !std::ofstream(a.report_file, std::ios::app)) {
    fail(ErrorKind::usage, "--report {}: cannot be written: {}", a.report_file, std::strerror(errno));
  }
}

void write_report(const Arguments& a, const nlohmann::ordered_json& json) {
  if (!a.report_file.empty()) {
    std::ofstream out(a.report_file);
    if (!(out << json_text(json) << std::flush)) {
      fail(ErrorKind::file, "--report {}: cannot be written: {}", a.report_file, std::strerror(errno));
    }
  }
  if (a.json) write_json(json);
}

int run_one(const Arguments& a, Session& session, const std::string& text) {
  std::vector<TokenId> ids;
  if (session.chat()) {
    if (const std::string warning = session.marker_warning(text); !warning.empty()) warn(warning);
    ids = session.encode_chat({{"user", text}});
  } else {
    ids = session.encode_raw(text);
  }
  if (!a.session_file.empty()) read_session_file(a.session_file, session);
  const GenerationResult result = answer(session, ids, session.stop_rules(&interrupted()), !a.json);
  if (!a.session_file.empty()) write_session_file(a.session_file, session);
  if (!a.json) {
    if (!result.text.empty() && result.text.back() != '\n' && is_terminal(1)) write_stdout("\n");
    if (!a.quiet) say(fmt::format("\n{}\n", human_summary(result, session)));
  }
  if (a.json || !a.report_file.empty()) {
    nlohmann::ordered_json json = to_json(result, session);
    json["settings"] = settings_json(session);
    write_report(a, json);
  }
  return result.stop_reason == StopReason::cancel ? 130 : 0;
}

// The answers to a prompt file, one after the other.
class Answers {
 public:
  Answers(const Arguments& a, Session& session)
      : a_(a), session_(session), failures_(a.prompts.file), reports_(a.json || !a.report_file.empty()) {
    if (reports_) settings_ = settings_json(session);
  }

  // Answers one prompt, or notes why not. False when Ctrl-C ended it.
  bool add(const PromptRow& row) {
    const auto failure = failures_.attempt(row, [&] { results_.push_back(run(row)); });
    nlohmann::ordered_json json = {{"id", row.id}, {"task", row.task}};
    if (failure) {
      json["error"] = to_valid_utf8(*failure);
    } else {
      json.update(to_json(results_.back(), session_));
      json["settings"] = settings_;
    }
    list_.push_back(std::move(json));
    return failure || results_.back().stop_reason != StopReason::cancel;
  }

  // Writes totals and reports; whether all prompts were answered.
  bool finish() {
    nlohmann::ordered_json totals = totals_json(results_, session_);
    totals["failed"] = failures_.count();
    if (!a_.quiet) say(fmt::format("{}\n", human_totals(results_)));
    if (failures_.count() > 0) say(fmt::format("tandem: {}\n", failures_.summary(list_.size())));
    if (reports_) write_report(a_, {{"results", list_}, {"totals", totals}, {"settings", settings_}});
    return failures_.count() == 0;
  }

 private:
  GenerationResult run(const PromptRow& row) {
    const std::vector<TokenId> prompt = encode_prompt(row, session_);
    session_.engine().reset();  // prompts never influence each other
    if (!a_.json) write_stdout(fmt::format("=== {}\n", row.id));
    GenerationResult result = answer(session_, prompt, prompt_rules(row, session_), !a_.json);
    if (!a_.json) write_stdout("\n");
    if (!a_.quiet) {
      say(fmt::format("{}: {} tokens, {}, {}\n", row.id, result.ids.size(),
                      result.decode_tokens_per_second ? fmt::format("{:.1f} tokens/s", *result.decode_tokens_per_second)
                                                      : "no rate",
                      name_of(result.stop_reason)));
    }
    return result;
  }

  const Arguments& a_;
  Session& session_;
  PromptFailures failures_;
  bool reports_;
  nlohmann::ordered_json settings_, list_ = nlohmann::ordered_json::array();
  std::vector<GenerationResult> results_;
};

int run_many(const Arguments& a, Session& session, const std::vector<PromptRow>& rows) {
  Answers answers(a, session);
  bool cancelled = false;
  for (const PromptRow& row : rows) {
    cancelled = !answers.add(row);
    if (cancelled) break;
  }
  const bool whole = answers.finish();
  return cancelled ? 130 : whole ? 0 : 1;
}

int run(const Arguments& a) {
  const int sources = a.has_prompt + !a.prompt_file.empty() + !a.prompts.file.empty();
  if (sources > 1)
    fail(ErrorKind::usage, "--prompt, --prompt-file and --prompts: expected one of them, got {}", sources);
  if (!a.session_file.empty() && !a.prompts.file.empty()) {
    fail(ErrorKind::usage, "--session keeps the cache of one prompt; expected it without --prompts");
  }
  Config config = load_config(a);
  std::vector<PromptRow> rows;
  std::string text;
  if (!a.prompts.file.empty()) {
    rows = read_prompts(a.prompts);
  } else {
    text = prompt_text(a);
  }
  check_report(a);
  if (!a.session_file.empty()) const AtomicFile probe(a.session_file);  // which is refused where none can be written
  interrupted();  // not before: Ctrl-C ends the reading of a prompt
  Session session(std::move(config), a.reference);
  warn(session.warning());
  return rows.empty() ? run_one(a, session, text) : run_many(a, session, rows);
}

}  // namespace

void add_generate(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("generate", "Stream an answer to stdout, figures to stderr");
  command->add_option("--config", a->config, "YAML file; see `tandem config --help` for its keys")->required();
  command->add_option("--set", a->overrides, "Override a key: --set draft.length=6 (repeatable)")
      ->allow_extra_args(false);
  CLI::Option* prompt =
      command->add_option("--prompt", a->prompt, "The prompt: a user's turn in a chat, raw text otherwise");
  command->add_option("--prompt-file", a->prompt_file, "Read the prompt from a file, byte for byte (- is stdin)");
  add_prompt_options(*command, a->prompts);
  command->add_option("--session", a->session_file,
                      "Keep the cache in this file: what two prompts begin with is read once");
  command->add_option("--report", a->report_file, "Write the JSON report to a file while text streams");
  command->add_flag("--json", a->json, "Print the JSON report on stdout instead of text");
  command->add_flag("--reference", a->reference, "F32 weights, activations and cache: slow, for checks");
  command->add_flag("--quiet", a->quiet, "No figures on stderr");
  command->footer(
      "Without a prompt option the prompt is read from stdin, byte for byte. With --prompts each line is answered as "
      "if\n"
      "it ran alone; one that cannot be answered is reported with its line, the others are answered, and the exit "
      "code\n"
      "is 1. What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: tandem generate --config configs/quickstart.yaml --set sampling.temperature=0 --prompt \"Explain "
      "mmap.\"");
  command->callback([a, prompt, &chosen] {
    a->has_prompt = prompt->count() > 0;
    chosen = [a] { return run(*a); };
  });
}

}  // namespace tandem
