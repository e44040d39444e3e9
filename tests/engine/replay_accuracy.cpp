// replay_accuracy: how near predictions come on real models. Prompt by prompt it answers plainly and with drafts of
// each length, in turns, and records; then it prints measured beside predicted speed over plain.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>

#include "src/cli/prompts.h"
#include "src/engine/recording_run.h"
#include "src/engine/replay.h"

namespace tandem::test {
namespace {

struct Arguments {
  std::string config = TANDEM_SOURCE_DIR "/configs/quickstart.yaml";
  std::string prompts = TANDEM_SOURCE_DIR "/bench/prompts/speed.jsonl";
  std::string record;  // file to keep the recording in; empty: none
  std::vector<std::string> lengths{"3", "6", "auto"};
  std::vector<std::string> ids;  // of prompts; empty: all
  int max_tokens = 96;
};

Session session_of(const Arguments& a, const std::string& length) {
  Options options = Options::from_file(a.config);
  options.set("draft.length=" + length);
  options.set(fmt::format("stop.max_tokens={}", a.max_tokens));
  return Session(read_config(std::move(options)));
}

// Real runs of one setting.
struct Side {
  std::string length;
  Session session;
  Engine plain, drafting;
  double plain_seconds = 0, drafted_seconds = 0, draft_seconds = 0, verify_seconds = 0;
  std::int64_t steps = 0, accepted = 0;

  Side(const Arguments& a, const std::string& wanted)
      : length(wanted),
        session(session_of(a, wanted)),
        plain(session.make_engine(plain_choice())),
        drafting(session.make_engine(session.configured_engine())) {}

  EngineChoice plain_choice() const {
    EngineChoice choice = session.configured_engine();
    choice.draft_kind = "none";
    return choice;
  }
  GenerationResult answer(Engine& engine, std::span<const TokenId> prompt, const StopRules& rules) const {
    engine.reset();
    Generation generation(engine, session.tokenizer(), prompt, rules);
    while (generation.advance()) continue;
    return generation.result();
  }
  static double decoding(const GenerationResult& r) {
    return r.tpot_seconds.value_or(0) * static_cast<double>(r.ids.size() - 1);
  }
  // Who goes first changes from prompt to prompt.
  void run(std::span<const TokenId> prompt, const StopRules& rules, bool plain_first) {
    if (plain_first) plain_seconds += decoding(answer(plain, prompt, rules));
    const GenerationResult drafted = answer(drafting, prompt, rules);
    if (!plain_first) plain_seconds += decoding(answer(plain, prompt, rules));
    drafted_seconds += decoding(drafted);
    draft_seconds += drafted.metrics.seconds.draft;
    verify_seconds += drafted.metrics.seconds.verify;
    steps += drafted.metrics.steps;
    accepted += drafted.metrics.total.accepted;
  }
};

void print(const Side& side, const Replayer& replayer) {
  const std::string& kind = side.session.config().draft.kind;
  const Prediction p =
      replayer.predict({.kind = kind,
                        .length = side.length == "auto" ? std::nullopt : std::optional(std::stoi(side.length)),
                        .min_probability = side.session.config().draft.min_probability,
                        .rule = side.session.config().verify.rule,
                        .head_rows = {}});
  const double measured = side.plain_seconds / side.drafted_seconds;
  fmt::print(
      "{} {:<5} over plain: measured {:.3f}, predicted {:.3f} ({:+.1f} %); steps {} and {}, accepted {} and {}; "
      "seconds plain {:.2f} and {:.2f}, draft {:.2f} and {:.2f}, verify {:.2f} and {:.2f}\n",
      kind, side.length, measured, p.total.ratio(), 100 * (p.total.ratio() / measured - 1), side.steps,
      p.total.metrics.steps, side.accepted, p.total.metrics.total.accepted, side.plain_seconds, p.total.plain_seconds,
      side.draft_seconds, p.total.draft_seconds, side.verify_seconds, p.total.verify_seconds);
  std::fflush(stdout);
}

int run(const Arguments& a) {
  std::deque<Side> sides;
  for (const std::string& length : a.lengths) sides.emplace_back(a, length);
  const Session recorded = session_of(a, "auto");
  Recorder recorder(recorded, 8);
  Recording recording = recorder.empty();
  for (const PromptRow& row : read_prompts({.file = a.prompts})) {
    if (!a.ids.empty() && std::ranges::find(a.ids, row.id) == a.ids.end()) continue;
    const std::vector<TokenId> prompt = encode_prompt(row, recorded);
    const StopRules rules = prompt_rules(row, recorded);
    for (Side& side : sides) side.run(prompt, rules, recording.answers.size() % 2 == 0);
    recording.answers.push_back(recorder.answer(row.id, row.task, prompt, rules).value());
    fmt::print("after {}:\n", row.id);
    const Replayer replayer(recording);
    for (const Side& side : sides) print(side, replayer);
    if (!a.record.empty()) write_recording(recording, a.record);
  }
  return 0;
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  tandem::test::Arguments a;
  CLI::App program("Compares predicted with measured speed-ups, prompt by prompt");
  program.add_option("--config", a.config, "Models and settings; draft.length is set here");
  program.add_option("--prompts", a.prompts, "JSON lines with id, messages and max_tokens");
  program.add_option("--ids", a.ids, "Only these prompts")->delimiter(',');
  program.add_option("--lengths", a.lengths, "Lengths to run, e.g. 3,6,auto")->delimiter(',');
  program.add_option("--max-tokens", a.max_tokens, "Longest answer")->capture_default_str();
  program.add_option("--record", a.record, "Keep the recording in this file");
  CLI11_PARSE(program, argc, argv);
  try {
    return tandem::test::run(a);
  } catch (const std::exception& error) {
    fmt::print(stderr, "replay_accuracy: {}\n", error.what());
    return 1;
  }
}
