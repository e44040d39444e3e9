// tandem sweep: how fast each drafting setting is against plain decoding, measured in turns in one process.
#include "src/engine/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/cli/prompts.h"
#include "src/cli/terminal.h"
#include "src/engine/sweep_journal.h"
#include "src/engine/sweep_report.h"

namespace tandem {
namespace {

struct Arguments {
  std::string config, out, label;
  PromptChoice prompts;
  std::vector<std::string> overrides;
  SweepGrid grid{.lengths = {"auto", "0", "1", "2", "4", "8"}};
  int max_tokens = 0, repeats = 1, warmup = 1;
  std::uint64_t seed = 1;
  bool resume = false, json = false, reference = false;
};

SweepCells read_cells(const Arguments& a) {
  return make_cells(a.grid, [&](const std::vector<std::string>& settings) {
    Options options = Options::from_file(a.config);
    for (const std::string& assignment : a.overrides) options.set(assignment);
    for (const std::string& assignment : settings) options.set(assignment);
    return read_config(std::move(options));
  });
}

std::vector<PromptRow> read_rows(const Arguments& a) {
  std::vector<PromptRow> rows = read_prompts(a.prompts);
  std::set<std::string> ids;
  for (const PromptRow& row : rows) {
    if (!ids.insert(row.id).second) {
      fail(ErrorKind::usage, "{}:{}: expected every prompt's id once, got {} again", a.prompts.file, row.line, row.id);
    }
  }
  return rows;
}

// Those that fit; the others are said and counted.
std::vector<SweepPrompt> encoded(const Arguments& a, const std::vector<PromptRow>& rows, const Session& session,
                                 PromptFailures& failures) {
  std::vector<SweepPrompt> prompts;
  for (const PromptRow& row : rows) {
    failures.attempt(row, [&] {
      std::vector<TokenId> ids = encode_prompt(row, session);
      prompts.push_back({row.id, row.task, std::move(ids), prompt_rules(row, session, a.max_tokens).max_tokens});
    });
  }
  if (prompts.empty()) fail(ErrorKind::input, "{}", failures.summary(rows.size()));
  return prompts;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << content << std::flush)) {
    fail(ErrorKind::file, "{}: cannot be written: {}", path, std::strerror(errno));
  }
}

// The winner's file of a sweep over several temperatures names its own.
std::string winner_path(const Arguments& a, const Winner& winner, std::size_t count) {
  return count == 1 ? a.out + ".yaml" : fmt::format("{}-t{}.yaml", a.out, winner.temperature);
}

class Run {
 public:
  Run(const Arguments& a, SweepCells made, const std::vector<PromptRow>& rows)
      : a_(a),
        cells_(std::move(made.cells)),
        journal_(open_journal(a)),
        session_(session_config(cells_), a.reference),
        failures_(a.prompts.file),
        prompts_(encoded(a, rows, session_, failures_)),
        sweep_(session_, cells_, prompts_, a.seed) {
    if (!journal_) return;
    journal_->require_identity(sweep_identity(session_, a.seed));
    pairs_ = journal_->pairs();
    start_ = journal_->starts();
  }

  // Measures what is missing. False when Ctrl-C ended it.
  bool measure() {
    const std::vector<SweepTask> todo = missing();
    if (todo.empty()) return true;
    ProgressBar bar("sweep");
    for (int i = 0; i < a_.warmup; ++i) {  // answers that count nowhere: the first touch memory that is cold
      if (!sweep_.run(todo.front(), interrupted())) return false;
    }
    for (std::size_t i = 0; i < todo.size(); ++i) {
      bar.show(i, todo.size());
      std::optional<SweepPair> pair = sweep_.run(todo[i], interrupted());
      if (!pair) return false;
      pair->start = start_;
      if (journal_) journal_->append(*pair);
      if (!pair->warning.empty() && warned_.insert(pair->warning).second) {
        bar.wipe();
        warn(pair->warning);
      }
      pairs_.push_back(std::move(*pair));
    }
    return true;
  }

  // Writes the report's files and prints it. False when a text differs, or an answer or a whole prompt failed.
  bool report() {
    const std::vector<CellFigures> figures = cell_figures(cells_, prompts_, pairs_, a_.seed);
    const SweepReport report{session_,
                             cells_,
                             prompts_,
                             pairs_,
                             figures,
                             a_.label,
                             fmt::format("{}", fmt::join(a_.overrides, " ")),
                             a_.seed,
                             a_.repeats,
                             missing().size()};
    const nlohmann::ordered_json json = sweep_json(report);
    if (!a_.out.empty()) write_files(report, json);
    if (a_.json) {
      write_json(json);
    } else {
      write_stdout(sweep_text(report));
    }
    return report.faults() == 0 && failures_.count() == 0;
  }

  const PromptFailures& failures() const { return failures_; }

 private:
  static std::unique_ptr<SweepJournal> open_journal(const Arguments& a) {
    if (a.out.empty()) return nullptr;
    return std::make_unique<SweepJournal>(a.out + ".jsonl",
                                          a.resume ? SweepJournal::Open::resume : SweepJournal::Open::fresh);
  }

  std::vector<SweepTask> missing() const {
    return remaining(sweep_order(cells_.size(), prompts_.size(), a_.repeats, a_.seed), cells_, prompts_, pairs_);
  }

  void write_files(const SweepReport& report, const nlohmann::ordered_json& json) const {
    write_file(a_.out + ".json", json_text(json));
    write_file(a_.out + ".csv", sweep_csv(report));
    const std::vector<Winner> found = winners(report.cells, report.figures);
    for (const Winner& winner : found) {
      write_file(winner_path(a_, winner, found.size()), winner_yaml(report, winner));
    }
  }

  const Arguments& a_;
  std::vector<SweepCell> cells_;
  std::unique_ptr<SweepJournal> journal_;  // null: nothing is kept
  Session session_;
  PromptFailures failures_;
  std::vector<SweepPrompt> prompts_;
  Sweep sweep_;
  std::vector<SweepPair> pairs_;
  int start_ = 0;
  std::set<std::string> warned_;
};

int run(const Arguments& a) {
  if (a.resume && a.out.empty()) fail(ErrorKind::usage, "--resume needs --out, whose journal it goes on with");
  SweepCells made = read_cells(a);
  const std::vector<PromptRow> rows = read_rows(a);
  for (const std::string& note : made.notes) say(fmt::format("tandem: sweep: {}\n", note));
  interrupted();
  Run sweep(a, std::move(made), rows);
  const bool whole = sweep.measure();
  const bool sound = sweep.report();
  if (sweep.failures().count() > 0) say(fmt::format("tandem: {}\n", sweep.failures().summary(rows.size())));
  if (!whole) {
    say(fmt::format("tandem: sweep: cancelled{}\n", a.out.empty() ? "" : "; --resume goes on"));
    return 130;
  }
  return sound ? 0 : 1;
}

}  // namespace

void add_sweep(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("sweep", "Compare drafting settings: each prompt under each, plainly next to it");
  command->add_option("--config", a->config, "YAML file; see `tandem config --help` for its keys")->required();
  command->add_option("--set", a->overrides, "Override a key: --set draft.quantize=q4_0 (repeatable)")
      ->allow_extra_args(false);
  add_prompt_options(*command, a->prompts)->required();
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* help) {
    CLI::Option* option = command->add_option(name, values, help)->delimiter(',')->type_name("LIST");
    if (!values.empty()) option->capture_default_str();
  };
  list("--kinds", a->grid.kinds, "Values of draft.kind, e.g. model,ngram,hybrid; without it as configured");
  list("--lengths", a->grid.lengths, "Values of draft.length; 0 is plain decoding against itself: what noise does");
  list("--thresholds", a->grid.thresholds, "Values of draft.min_probability, e.g. 0,0.4; without it as configured");
  list("--rules", a->grid.rules, "Values of verify.rule, e.g. rejection,block; without it as configured");
  list("--temperatures", a->grid.temperatures, "Values of sampling.temperature, e.g. 0,0.8; without it as configured");
  const auto count = [&](const char* name, int& value, int low, const char* help) {
    command->add_option(name, value, help)->check(CLI::Range(low, 1 << 20))->capture_default_str();
  };
  count("--repeats", a->repeats, 1, "Pairs of answers of each prompt under each setting");
  count("--warmup", a->warmup, 0, "Pairs run at every start and not counted");
  command->add_option("--seed", a->seed, "Fixes order, draws (of repeat r: seed + r) and intervals")
      ->capture_default_str();
  count("--max-tokens", a->max_tokens, 0, "Shorter answers than config and prompts say; 0 is as they say");
  command->add_option("--out", a->out, "Keep PREFIX.jsonl (the journal), .csv, .json and .yaml (the fastest setting)")
      ->type_name("PREFIX");
  command->add_option("--label", a->label, "Text for the label column of the CSV, e.g. the machine's name");
  command->add_flag("--resume", a->resume,
                    "Go on with the journal of --out, after Ctrl-C or a kill, or with a wider grid");
  command->add_flag("--json", a->json, "Print JSON");
  command->add_flag("--reference", a->reference, "F32 weights, activations and cache: slow, for checks");
  command->footer(
      "Speed-up of a pair: plain seconds a token over drafted ones, of tokens after the first; all drafting after "
      "that\n"
      "token is in them, the draft's reading of the prompt too. Of a prompt: geometric mean over repeats; of a "
      "setting:\n"
      "geometric mean over prompts. Interval: 95 % bootstrap over prompts and repeats; with few prompts it is too "
      "narrow.\n"
      "tokens/s: decoded tokens over their seconds, all prompts together. accepted: of tested drafts. a step: tokens.\n"
      "Noisy pairs: plain seconds a token off the median of the up to 8 pairs nearest in time by more than 25 %, or\n"
      "the speed-up off that of 3 or more repeats of the same work. They are marked, and count where a prompt has no\n"
      "others. In a bar # reaches the interval's lower end, ~ its upper, and | is plain decoding.\n"
      "Texts must equal plain decoding's at temperature 0 and under coupled: exit code 1 when one does not.\n"
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Example: tandem sweep --config configs/quickstart.yaml --prompts bench/prompts/speed.jsonl --kinds model,hybrid "
      "--out sweep");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
