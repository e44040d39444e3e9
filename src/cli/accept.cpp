// tandem accept: what share of its drafts a pair of models accepts, where, and how much drafting would pay.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/option_text.h"
#include "src/cli/commands.h"
#include "src/cli/prompts.h"
#include "src/cli/terminal.h"
#include "src/engine/acceptance_report.h"
#include "src/engine/report.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMeasuredLength = 8;  // in place of auto: what a policy leaves out says nothing of other lengths

struct Arguments {
  std::string config, length;
  PromptChoice prompts;
  std::vector<std::string> overrides;
  std::vector<double> temperatures;
  int max_tokens = 0;
  bool vocabulary_only = false, reference = false, json = false;
};

Config load_config(const Arguments& a) {
  Options options = Options::from_file(a.config);
  for (const std::string& assignment : a.overrides) options.set(assignment);
  if (!a.length.empty()) options.set("draft.length=" + a.length);
  Config config = read_config(options);
  if (a.length.empty() && !config.draft.length) {
    options.set(fmt::format("draft.length={}", options.has("draft.max_nodes")
                                                   ? std::min(kMeasuredLength, config.draft.max_nodes - 1)
                                                   : kMeasuredLength));
    config = read_config(std::move(options));
  }
  if (config.draft.kind == "none") {
    config.options.refuse("draft.kind", "none drafts nothing, so that there is nothing to measure");
  }
  return config;
}

// Every answer of a run, and what became of its drafts.
class Run {
 public:
  Run(const Arguments& a, const Session& session, std::optional<VocabularyReport> vocabulary,
      std::vector<PromptRow> rows)
      : a_(a),
        session_(session),
        vocabulary_(std::move(vocabulary)),
        rows_(std::move(rows)),
        costs_(session.pass_costs()),
        failures_(a.prompts.file) {
    std::vector<double> temperatures = a.temperatures;
    if (temperatures.empty()) temperatures.push_back(session.config().sampling.temperature);
    for (const double temperature : temperatures)
      found_.push_back({.temperature = temperature, .all = {}, .tasks = {}});
  }

  // False when Ctrl-C ended it; what was counted until then stays.
  bool answers() {
    ProgressBar bar("answers");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      bool whole = true;
      const auto failure = failures_.attempt(
          rows_[i],
          [&] {
            const std::vector<TokenId> prompt = encode_prompt(rows_[i], session_);
            for (std::size_t t = 0; t < found_.size() && whole; ++t) {
              bar.show(i * found_.size() + t, rows_.size() * found_.size());
              whole = answer(rows_[i], prompt, found_[t], bar);
            }
          },
          &bar);
      if (failure) list_.push_back({{"id", rows_[i].id}, {"task", rows_[i].task}, {"error", to_valid_utf8(*failure)}});
      if (!whole) return false;
    }
    return true;
  }

  Json json(bool whole) const {
    Json json = {{"vocabulary", vocabulary_ ? to_json(*vocabulary_) : Json(nullptr)},
                 {"interrupted", !whole},
                 {"failed", failures_.count()},
                 {"temperatures", Json::array()},
                 {"results", list_},
                 {"settings", settings_json(session_)}};
    for (const TemperatureAcceptance& found : found_) json["temperatures"].push_back(to_json(found, costs_.model()));
    json["settings"]["cost_table"] = costs_json(costs_);
    return json;
  }

  std::string text() const {
    const Config& config = session_.config();
    std::string text = vocabulary_ ? to_text(*vocabulary_) : "";
    text += fmt::format("drafts: {} of length {}\n", config.draft.kind,
                        config.draft.length ? fmt::to_string(*config.draft.length)
                                            : "auto, so that figures are of what the policy chose to draft");
    for (const TemperatureAcceptance& found : found_) {
      text += "\n" + to_text(found, costs_.model(), config.verify.rule);
    }
    return text;
  }

  const PromptFailures& failures() const { return failures_; }
  std::size_t prompts() const { return rows_.size(); }

 private:
  bool answer(const PromptRow& row, std::span<const TokenId> prompt, TemperatureAcceptance& found, ProgressBar& bar) {
    EngineChoice choice = session_.configured_engine();
    choice.sampling.temperature = found.temperature;
    const MeasuredAnswer answer =
        measure_acceptance(session_, std::move(choice), prompt, prompt_rules(row, session_, a_.max_tokens));
    if (!answer.warning.empty()) {
      bar.wipe();
      warn(fmt::format("prompt {}: {}", row.id, answer.warning));
    }
    found.add(row.task, answer.counts);
    const Metrics& m = answer.counts.metrics;
    list_.push_back({{"id", row.id},
                     {"task", row.task},
                     {"temperature", found.temperature},
                     {"stop_reason", name_of(answer.result.stop_reason)},
                     {"generated_tokens", m.generated},
                     {"steps", m.steps},
                     {"proposed", m.total.proposed},
                     {"tested", m.total.tested},
                     {"accepted", m.total.accepted}});
    return answer.result.stop_reason != StopReason::cancel;
  }

  const Arguments& a_;
  const Session& session_;
  std::optional<VocabularyReport> vocabulary_;
  std::vector<PromptRow> rows_;
  CostTable costs_;
  PromptFailures failures_;
  std::vector<TemperatureAcceptance> found_;
  Json list_ = Json::array();
};

// The pair's vocabularies; exit code 1 for a pair that is refused.
int run_vocabulary(const Arguments& a, const Config& config) {
  if (!config.draft.uses_model()) {
    config.options.refuse("draft.kind",
                          fmt::format("{} has no draft model whose vocabulary could be compared", config.draft.kind));
  }
  const VocabularyReport report = compare_vocabularies(config);
  const bool written = a.json ? write_json({{"vocabulary", to_json(report)}}) : write_stdout(to_text(report));
  return written && report.fits() ? 0 : 1;
}

int run(const Arguments& a) {
  if (!a.vocabulary_only && a.prompts.file.empty()) {
    fail(ErrorKind::usage, "--prompts: expected a prompt file, or --vocabulary-only; see tandem accept --help");
  }
  Config config = load_config(a);
  if (a.vocabulary_only) return run_vocabulary(a, config);
  std::vector<PromptRow> rows = read_prompts(a.prompts);
  std::optional<VocabularyReport> vocabulary;
  if (config.draft.uses_model()) {
    vocabulary = compare_vocabularies(config);
    if (!vocabulary->fits()) say(to_text(*vocabulary));  // the session says why it refuses the pair
  }
  interrupted();
  const Session session(std::move(config), a.reference);
  warn(session.warning());
  Run measured(a, session, std::move(vocabulary), std::move(rows));
  const bool whole = measured.answers();
  const bool written = a.json ? write_json(measured.json(whole)) : write_stdout(measured.text());
  const PromptFailures& failures = measured.failures();
  if (failures.count() > 0) say(fmt::format("tandem: {}\n", failures.summary(measured.prompts())));
  if (!whole) {
    say("tandem: accept: cancelled; the figures are those of the answers until then\n");
    return 130;
  }
  return written && failures.count() == 0 ? 0 : 1;
}

std::string length_check(const std::string& text) {
  if (text == "auto" || parse_integer(text, 0, kMaxTreeNodes - 1)) return {};
  return fmt::format("expected auto or 0..{}, got {}", kMaxTreeNodes - 1, text);
}

}  // namespace

void add_accept(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("accept", "Acceptance of a pair of models by task, position, source and confidence");
  command->add_option("--config", a->config, "YAML file; see `tandem config --help` for its keys")->required();
  command->add_option("--set", a->overrides, "Override a key: --set verify.rule=block (repeatable)")
      ->allow_extra_args(false);
  add_prompt_options(*command, a->prompts);
  command->add_option("--temperatures", a->temperatures, "Comma-separated; without it the configured one")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1e6));
  command
      ->add_option("--length", a->length,
                   fmt::format("Drafts a step: auto or 0..63; without it the configured number, or {} for auto",
                               kMeasuredLength))
      ->check(length_check);
  command->add_option("--max-tokens", a->max_tokens, "Shorter answers than config and prompts say; 0 is as they say")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_flag("--vocabulary-only", a->vocabulary_only, "Only compare the vocabularies; loads no weights");
  command->add_flag("--json", a->json, "Print JSON");
  command->add_flag("--reference", a->reference, "F32 weights, activations and cache: slow");
  command->footer(
      "Answers every prompt at every temperature and counts what became of the drafts. A fixed length is measured,\n"
      "because what an automatic one leaves out says nothing of other lengths. sum min(p, q) is what rejection\n"
      "sampling should accept, speeds are expected from the costs of passes on this machine. What every figure means:\n"
      "the section \"What the figures mean\" of README.md.\n"
      "Exit code 0; 1 when a prompt cannot be answered (the others are) or the pair is refused; 2 for usage and\n"
      "configuration mistakes; 130 after Ctrl-C, with the figures of the answers until then.\n"
      "Example: tandem accept --config configs/quickstart.yaml --prompts bench/prompts/speed.jsonl --limit 4 "
      "--temperatures 0,0.7");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
