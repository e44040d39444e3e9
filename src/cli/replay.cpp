// tandem replay: records a plain run once, then predicts what other settings would do.
#include "src/engine/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "draft/head_ranking.h"
#include "src/base/error.h"
#include "src/base/option_text.h"
#include "src/cli/commands.h"
#include "src/cli/prompts.h"
#include "src/cli/terminal.h"
#include "src/engine/recording_run.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string record, config, head_ranking, best_file;
  PromptChoice prompts;
  std::vector<std::string> overrides, kinds, lengths, rules, head_rows;
  std::vector<double> min_probabilities;
  int max_tokens = 0, longest = 8, repeats = 8;
  bool json = false;
};

// --- recording

Config recorded_config(const Arguments& a) {
  Options options = Options::from_file(a.config);
  for (const std::string& assignment : a.overrides) options.set(assignment);
  options.set("draft.length=auto");  // whose costs belong to the recording
  return read_config(std::move(options));
}

// Writes the recording after every answer, so that whatever ends the run leaves those that are whole. Returns the exit
// code so far.
int record(const Arguments& a) {
  if (std::filesystem::exists(a.record)) {
    fail(ErrorKind::usage,
         "--record {}: exists already; predict from it (without --config), remove it or take another name", a.record);
  }
  Config config = recorded_config(a);
  const std::vector<PromptRow> rows = read_prompts(a.prompts);
  interrupted();
  const Session session(std::move(config));
  Recorder recorder(session, a.longest);
  Recording recording = recorder.empty();
  PromptFailures failures(a.prompts.file);
  ProgressBar bar("recording");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bar.show(i, rows.size());
    std::optional<RecordedAnswer> answer;
    const auto failure = failures.attempt(
        rows[i],
        [&] {
          answer = recorder.answer(rows[i].id, rows[i].task, encode_prompt(rows[i], session),
                                   prompt_rules(rows[i], session, a.max_tokens));
        },
        &bar);
    if (failure) continue;
    if (!answer) break;
    recording.answers.push_back(std::move(*answer));
    write_recording(recording, a.record);
  }
  bar.wipe();
  if (recording.answers.empty() && !interrupted()) {
    fail(ErrorKind::input, "{}: none of {} prompts could be recorded", a.prompts.file, rows.size());
  }
  say(fmt::format("tandem: recorded {} of {} answers\n", recording.answers.size(), rows.size()));
  if (failures.count() > 0) say(fmt::format("tandem: {}\n", failures.summary(rows.size())));
  return interrupted() ? 130 : failures.count() > 0 ? 1 : 0;
}

// --- predicting

int whole_number(const std::string& text, const char* option, int low, int high) {
  const auto value = parse_integer(text, low, high);
  if (!value) fail(ErrorKind::usage, "{} {}: expected an integer {}..{}", option, text, low, high);
  return static_cast<int>(*value);
}

ReplayGrid grid_of(const Arguments& a, const RecordingSettings& recorded) {
  ReplayGrid grid{a.kinds, a.rules, {}, a.min_probabilities, {}};
  if (grid.kinds.empty()) {
    grid.kinds =
        recorded.has_draft() ? std::vector<std::string>{"ngram", "model", "hybrid"} : std::vector<std::string>{"ngram"};
  }
  for (const std::string& length : a.lengths) {
    grid.lengths.push_back(length == "auto" ? std::nullopt
                                            : std::optional(whole_number(length, "--lengths", 0, kMaxTreeNodes - 1)));
  }
  if (a.lengths.empty()) {
    grid.lengths.push_back(std::nullopt);
    for (int length = 1; length <= recorded.longest; ++length) grid.lengths.push_back(length);
  }
  for (const std::string& rows : a.head_rows) {
    grid.head_rows.push_back(
        rows == "recorded" ? std::nullopt : std::optional(whole_number(rows, "--head-rows", 1, recorded.vocabulary)));
  }
  return grid;
}

std::string length_text(const ReplaySetting& setting) {
  return setting.length ? fmt::to_string(*setting.length) : "auto";
}

Json to_json(const Prediction& p, const std::vector<RecordedAnswer>& answers) {
  const Metrics& m = p.total.metrics;
  const double seconds = p.total.seconds();
  Json json = {{"kind", p.setting.kind},
               {"length", p.setting.length ? Json(*p.setting.length) : Json("auto")},
               {"min_probability", p.setting.min_probability},
               {"rule", p.setting.rule},
               {"head_rows", p.setting.head_rows ? Json(*p.setting.head_rows) : Json(nullptr)},
               {"tokens_per_second", p.tokens_per_second()},
               {"over_plain", p.total.ratio()},
               {"worst_over_plain", p.worst_ratio()},
               {"acceptance_rate", p.acceptance() ? Json(*p.acceptance()) : Json(nullptr)},
               {"tokens_a_step", p.tokens_a_step()},
               {"steps", m.steps},
               {"proposed", m.total.proposed},
               {"tested", m.total.tested},
               {"accepted", m.total.accepted},
               {"shares",
                {{"draft", p.total.draft_seconds / seconds},
                 {"verify", p.total.verify_seconds / seconds},
                 {"sample", p.total.sample_seconds / seconds},
                 {"other", p.total.other_seconds / seconds}}},
               {"answers", Json::array()}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    json["answers"].push_back({{"id", answers[i].id},
                               {"task", answers[i].task},
                               {"over_plain", p.answers[i].ratio()},
                               {"steps", p.answers[i].metrics.steps},
                               {"tested", p.answers[i].metrics.total.tested},
                               {"accepted", p.answers[i].metrics.total.accepted}});
  }
  return json;
}

std::string line_of(const Prediction& p, bool best) {
  const ReplaySetting& s = p.setting;
  return fmt::format("{:<8}{:>7}{:>7.2f}  {:<10}{:>9}{:>10.1f}{:>12.2f}{:>8.2f}{:>12}{:>15.2f}{}\n", s.kind,
                     length_text(s), s.min_probability, s.rule, s.head_rows ? fmt::to_string(*s.head_rows) : "-",
                     p.tokens_per_second(), p.total.ratio(), p.worst_ratio(),
                     p.acceptance() ? fmt::format("{:.2f}", *p.acceptance()) : "-", p.tokens_a_step(),
                     best ? "  <- best" : "");
}

std::string heading(const Replayer& replayer, std::size_t prompt_tokens, std::size_t tokens) {
  const Recording& r = replayer.recording();
  return fmt::format(
      "{} answers, {} prompt tokens and {} generated, temperature {}; plain decoding {:.1f} tokens/s\n"
      "{:<8}{:>7}{:>7}  {:<10}{:>9}{:>10}{:>12}{:>8}{:>12}{:>15}\n",
      r.answers.size(), prompt_tokens, tokens, r.settings.sampling.temperature, replayer.plain_tokens_per_second(),
      "kind", "length", "min p", "rule", "head", "tokens/s", "over plain", "worst", "acceptance", "tokens a step");
}

// The recorded settings with those of the prediction, as a file that `tandem generate` takes.
void write_best(const std::string& path, const Recording& recording, const ReplaySetting& best,
                const std::string& ranking) {
  Options options = Options::from_text(recording.run.at("effective_yaml").get<std::string>(), "recording");
  options.set("draft.kind=" + best.kind);
  options.set("draft.length=" + length_text(best));
  options.set(fmt::format("draft.min_probability={}", best.min_probability));
  options.set("verify.rule=" + best.rule);
  if (best.length) options.set(fmt::format("draft.max_nodes={}", *best.length + 1));
  if (best.head_rows) {
    options.set(fmt::format("draft.head_rows={}", *best.head_rows));
    if (!ranking.empty()) options.set("draft.head_ranking=" + std::filesystem::absolute(ranking).string());
  }
  const std::string yaml = to_yaml(read_config(std::move(options)));
  std::ofstream out(path);
  if (!(out << yaml << std::flush)) fail(ErrorKind::file, "--best {}: cannot be written", path);
}

int predict(const Arguments& a) {
  Recording recording = read_recording(a.record);
  const ReplayGrid grid = grid_of(a, recording.settings);
  std::size_t prompt_tokens = 0, tokens = 0;
  for (const RecordedAnswer& answer : recording.answers) {
    prompt_tokens += static_cast<std::size_t>(answer.prompt);
    tokens += static_cast<std::size_t>(answer.generated);
  }
  std::vector<TokenId> ranking;
  if (!a.head_ranking.empty()) ranking = read_head_ranking(a.head_ranking, recording.settings.vocabulary);
  const Replayer replayer(std::move(recording), std::move(ranking), a.repeats);
  const std::vector<ReplaySetting> settings = replayer.combinations(grid);
  interrupted();
  std::vector<Prediction> predictions;
  ProgressBar bar("replay");
  for (const ReplaySetting& setting : settings) {
    bar.show(predictions.size(), settings.size());
    if (interrupted()) return 130;
    predictions.push_back(replayer.predict(setting));
  }
  bar.wipe();
  const auto best = std::ranges::max_element(predictions, {}, [](const Prediction& p) { return p.total.ratio(); });
  if (!a.best_file.empty()) write_best(a.best_file, replayer.recording(), best->setting, a.head_ranking);
  if (a.json) {
    Json json = {{"record", a.record},
                 {"plain_tokens_per_second", replayer.plain_tokens_per_second()},
                 {"generated_tokens", tokens},
                 {"temperature", replayer.recording().settings.sampling.temperature},
                 {"best", best - predictions.begin()},
                 {"predictions", Json::array()},
                 {"run", replayer.recording().run}};
    for (const Prediction& p : predictions) json["predictions"].push_back(to_json(p, replayer.recording().answers));
    return write_json(json) ? 0 : 1;
  }
  std::string out = heading(replayer, prompt_tokens, tokens);
  for (const Prediction& p : predictions) out += line_of(p, &p == &*best);
  return write_stdout(out) ? 0 : 1;
}

int run(const Arguments& a) {
  if (a.config.empty() != a.prompts.file.empty()) {
    fail(ErrorKind::usage, "--config and --prompts: a recording is made of both, got {} alone",
         a.config.empty() ? "--prompts" : "--config");
  }
  if (a.config.empty()) return predict(a);
  const int recorded = record(a);
  if (recorded == 130) return recorded;
  const int predicted = predict(a);
  return predicted != 0 ? predicted : recorded;
}

void add_recording_options(CLI::App& command, Arguments& a) {
  command.add_option("--record", a.record, "The recording: made with --config and --prompts, else read")->required();
  command.add_option("--config", a.config, "Record with this YAML file; see `tandem config --help` for its keys");
  command.add_option("--set", a.overrides, "Override a key: --set sampling.temperature=0 (repeatable)")
      ->allow_extra_args(false);
  add_prompt_options(command, a.prompts);
  command
      .add_option("--max-tokens", a.max_tokens, "Record shorter answers than config and prompts say; 0 is as they say")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command.add_option("--longest", a.longest, "Record what the draft goes on with for so many tokens")
      ->check(CLI::Range(1, kMaxTreeNodes - 1))
      ->capture_default_str();
}

void add_prediction_options(CLI::App& command, Arguments& a) {
  command.add_option("--kinds", a.kinds, "none, ngram, model, hybrid; default: all that were recorded")->delimiter(',');
  command.add_option("--lengths", a.lengths, "auto or numbers; default: auto and 1 to --longest")->delimiter(',');
  command
      .add_option("--min-probabilities", a.min_probabilities, "Values of draft.min_probability; default: as recorded")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--rules", a.rules, "rejection, block, coupled; default: as recorded; one at temperature 0")
      ->delimiter(',');
  command.add_option("--head-rows", a.head_rows, "Values of draft.head_rows, or recorded; default: recorded")
      ->delimiter(',');
  command.add_option("--head-ranking", a.head_ranking, "File that says which rows those are (draft.head_ranking)");
  command.add_option("--repeats", a.repeats, "Replays of each answer above temperature 0")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--best", a.best_file, "Write the fastest setting as a YAML file for `tandem generate`");
  command.add_flag("--json", a.json, "Print JSON");
}

}  // namespace

void add_replay(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("replay", "Record a plain run once, then predict speed and acceptance of other settings");
  add_recording_options(*command, *a);
  add_prediction_options(*command, *a);
  command->footer(
      "A recording holds plain decoding's text of each prompt, both models' best 64 tokens at every place, what the\n"
      "draft goes on with where it is wrong, and what passes took. A prediction runs the engine, drafters and length\n"
      "policies over it, without a model. At temperature 0 steps, tested and accepted are exact for fixed lengths and\n"
      "thresholds (without a trimmed head); above, draws are replayed given the text (--repeats). Seconds are sums of\n"
      "recorded passes. Drafts from a corpus, through text or of kind recycle, and answers under a constraint do not\n"
      "replay.\n"
      "over plain: plain decoding's seconds of the same tokens over the predicted ones, from the first token on.\n"
      "worst: the same of the worst answer. acceptance: accepted over tested drafts. tokens a step: decoded tokens "
      "over\n"
      "steps, the first token left out.\n"
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: tandem replay --record speed.rec --config configs/quickstart.yaml --prompts bench/prompts/speed.jsonl\n"
      "         tandem replay --record speed.rec --kinds model --lengths 2,4 --head-rows 16384,32768");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
