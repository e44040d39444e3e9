// tandem check: shows on one's own models and prompts that drafting changes nothing.
#include "src/engine/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/cli/prompts.h"
#include "src/cli/terminal.h"
#include "src/engine/report.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string config;
  PromptChoice prompts;
  std::vector<std::string> overrides;
  int max_tokens = 0, laws = 3;
  double level = 1e-4;
  CheckOptions options;
  bool reference = false, json = false;
};

Config load_config(const Arguments& a) {
  Options options = Options::from_file(a.config);
  for (const std::string& assignment : a.overrides) options.set(assignment);
  Config config = read_config(std::move(options));
  if (config.draft.kind == "none") {
    config.options.refuse("draft.kind", "none drafts nothing, so that there is nothing to check");
  }
  if (config.verify.lossy && config.sampling.temperature > 0 && !make_verifier(config.verify.rule)->lossless()) {
    config.options.refuse("verify.rule",
                          fmt::format("{} is lossy: at a temperature above 0 its text has another distribution than "
                                      "plain decoding's, so that there is nothing to check",
                                      config.verify.rule));
  }
  return config;
}

double acceptance(const DraftCounts& drafts) {
  return drafts.tested > 0 ? static_cast<double>(drafts.accepted) / static_cast<double>(drafts.tested) : 0;
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const std::string& id, const TextCheck& check) {
  Json json = {{"id", id},
               {"passed", check.passed()},
               {"tokens", check.tokens},
               {"steps", check.steps},
               {"tested", check.drafts.tested},
               {"accepted", check.drafts.accepted},
               {"difference", nullptr}};
  if (check.difference) {
    json["difference"] = {{"index", check.difference->index},
                          {"plain", check.difference->plain},
                          {"drafted", check.difference->drafted},
                          {"margin", optional_json(check.difference->margin)}};
  }
  return json;
}

Json to_json(const std::string& id, const LawCheck& check) {
  return {{"id", id},
          {"passed", check.passed()},
          {"draws", check.draws},
          {"tokens", check.tokens},
          {"cells", check.cells},
          {"covered", check.covered},
          {"impossible", check.impossible},
          {"statistic", std::isfinite(check.statistic) ? Json(check.statistic) : Json(nullptr)},
          {"p_value", check.p_value},
          {"level", check.level},
          {"total_variation", check.total_variation},
          {"expected_variation", check.expected_variation},
          {"detectable_variation", optional_json(check.detectable_variation)},
          {"tested", check.drafts.tested},
          {"accepted", check.drafts.accepted},
          {"prefixes", check.prefixes}};
}

// In quotes, with what is no printable text escaped.
std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string line_of(const TextCheck& check) {
  const std::string line =
      fmt::format("{} tokens, {} steps, acceptance {:.2f}: ", check.tokens, check.steps, acceptance(check.drafts));
  if (check.passed()) return line + "equal";
  const TextDifference& d = *check.difference;
  return line + fmt::format("DIFFERS at token {}: plain {}, drafted {} ({})", d.index, quoted(d.plain),
                            quoted(d.drafted),
                            d.margin ? fmt::format("logit margin {:.4g}", *d.margin) : "one answer ended");
}

std::string line_of(const LawCheck& check) {
  std::string line =
      fmt::format("{} draws of {} tokens, acceptance {:.2f}: ", check.draws, check.tokens, acceptance(check.drafts));
  if (check.impossible > 0) line += fmt::format("{} IMPOSSIBLE for plain decoding, ", check.impossible);
  if (!check.detectable_variation) {
    return line + fmt::format("one continuation has probability {:.6f}, p {:.3g}{}", check.covered, check.p_value,
                              check.p_value < check.level ? " FAILS" : "");
  }
  return line + fmt::format(
                    "{} cells, chi-square {:.1f}, p {:.3g}{}; total variation {:.4f} (chance gives about {:.4f}, "
                    "{:.4f} would be found)",
                    check.cells, check.statistic, check.p_value, check.p_value < check.level ? " FAILS" : "",
                    check.total_variation, check.expected_variation, *check.detectable_variation);
}

// One run over all prompts; what it found, and whether Ctrl-C ended it.
class Run {
 public:
  Run(const Arguments& a, Session& session, std::vector<PromptRow> rows)
      : a_(a),
        session_(session),
        rows_(std::move(rows)),
        prompts_(rows_.size()),
        checker_(session, a.options),
        failures_(a.prompts.file) {}

  // Whether all prompts came to their turn. Those that cannot be answered are noted and left out from then on.
  bool texts(const char* name, double temperature) {
    Json& list = found_[name] = Json::array();
    ProgressBar bar(name);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      bar.show(i, rows_.size());
      std::optional<TextCheck> check;
      const bool done = attempt(i, list, bar, [&](std::span<const TokenId> prompt) {
        check = checker_.same_text(prompt, prompt_rules(rows_[i], session_, a_.max_tokens), temperature);
      });
      if (!done) continue;
      if (!check) return false;
      equal_ += check->passed();
      ++texts_;
      bar.wipe();
      add(list, name, rows_[i].id, *check);
    }
    return true;
  }

  bool laws() {
    Json& list = found_["laws"] = Json::array();
    const std::size_t count = std::min(rows_.size(), static_cast<std::size_t>(a_.laws));
    for (std::size_t i = 0; i < rows_.size() && laws_ < static_cast<int>(count); ++i) {
      ProgressBar bar("law of " + rows_[i].id);
      std::optional<LawCheck> check;
      const bool done = attempt(i, list, bar, [&](std::span<const TokenId> prompt) {
        check = checker_.same_law(prompt, a_.level / static_cast<double>(count), [&](int drawn, int total) {
          if (drawn % 64 == 0) bar.show(static_cast<std::size_t>(drawn), static_cast<std::size_t>(total));
          return !interrupted();
        });
      });
      if (!done) continue;
      bar.wipe();
      if (!check) return false;
      fit_ += check->passed();
      ++laws_;
      smallest_p_ = std::min(smallest_p_, check->p_value);
      add(list, "law", rows_[i].id, *check);
    }
    return true;
  }

  bool passed() const { return equal_ == texts_ && fit_ == laws_ && failures_.count() == 0; }

  std::string verdict() const {
    std::string line = fmt::format("check: {}: {} drafts under {}: {} of {} texts equal plain decoding's",
                                   passed() ? "passed" : "FAILED", session_.config().draft.kind,
                                   session_.config().verify.rule, equal_, texts_);
    if (laws_ > 0) {
      line += fmt::format(", {} of {} laws fit (smallest p {:.2g}; {:.2g} would fail)", fit_, laws_, smallest_p_,
                          a_.level / laws_);
    }
    if (failures_.count() > 0) line += "; " + failures_.summary(rows_.size());
    return line + "\n";
  }

  Json json() const {
    Json json = {{"passed", passed()}, {"failed", failures_.count()}};
    json.update(found_);
    json["settings"] = settings_json(session_);
    return json;
  }

 private:
  // Works on a prompt that nothing was wrong with so far; one that fails gets a row that says so. Whether it was done.
  template <typename Work>
  bool attempt(std::size_t i, Json& list, ProgressBar& bar, Work&& work) {
    if (failed_.contains(i)) return false;
    const auto failure = failures_.attempt(
        rows_[i],
        [&] {
          if (prompts_[i].empty()) prompts_[i] = encode_prompt(rows_[i], session_);
          work(prompts_[i]);
        },
        &bar);
    if (!failure) return true;
    failed_.insert(i);
    list.push_back({{"id", rows_[i].id}, {"passed", false}, {"error", to_valid_utf8(*failure)}});
    return false;
  }

  template <typename Check>
  void add(Json& list, const char* name, const std::string& id, const Check& check) {
    list.push_back(to_json(id, check));
    if (!a_.json) write_stdout(fmt::format("{:<9} {:<12} {}\n", name, id, line_of(check)));
  }

  const Arguments& a_;
  Session& session_;
  std::vector<PromptRow> rows_;
  std::vector<std::vector<TokenId>> prompts_;  // ids, once they were needed
  std::set<std::size_t> failed_;
  Checker checker_;
  PromptFailures failures_;
  Json found_;
  int texts_ = 0, equal_ = 0, laws_ = 0, fit_ = 0;
  double smallest_p_ = 1;
};

int run(const Arguments& a) {
  Config config = load_config(a);
  std::vector<PromptRow> rows = read_prompts(a.prompts);
  const double temperature = config.sampling.temperature;
  const bool coupled = config.verify.rule == "coupled";
  interrupted();
  Session session(std::move(config), a.reference);
  warn(session.warning());
  Run checks(a, session, std::move(rows));
  bool whole = checks.texts("greedy", 0);
  if (whole && temperature > 0) whole = coupled ? checks.texts("same_seed", temperature) : checks.laws();
  if (!whole) {
    say("tandem: check: cancelled\n");
    return 130;
  }
  const bool written = a.json ? write_json(checks.json()) : write_stdout(checks.verdict());
  return written && checks.passed() ? 0 : 1;
}

}  // namespace

void add_check(CLI::App& program, Command& chosen) {
  auto a = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "check", "Show that drafting changes nothing: plain decoding against the configured drafts");
  command->add_option("--config", a->config, "YAML file; see `tandem config --help` for its keys")->required();
  command->add_option("--set", a->overrides, "Override a key: --set draft.length=6 (repeatable)")
      ->allow_extra_args(false);
  add_prompt_options(*command, a->prompts)->required();
  command->add_option("--max-tokens", a->max_tokens, "Shorter answers than config and prompts say; 0 is as they say")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--laws", a->laws, "Prompts whose sampled continuations are counted (rejection and block)")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--draws", a->options.draws, "Continuations drawn of each, with as many seeds")
      ->check(CLI::Range(100, 100000000))
      ->capture_default_str();
  command->add_option("--tokens", a->options.tokens, "Tokens of a continuation, fewer where the law is too flat")
      ->check(CLI::Range(2, 16))
      ->capture_default_str();
  command->add_option("--level", a->level, "Chance that a run fails although all laws are true")
      ->check(CLI::Range(1e-12, 0.1))
      ->capture_default_str();
  command->add_flag("--json", a->json, "Print JSON");
  command->add_flag("--reference", a->reference, "F32 weights, activations and cache: slow");
  command->footer(
      "At temperature 0 the texts must be equal, byte for byte; this is always checked. At a higher configured\n"
      "temperature `coupled` must give plain decoding's text of the seed, and under rejection and block the counts of\n"
      "short continuations must fit their exact probabilities. `typical` is lossy: refused above temperature 0.\n"
      "What every figure means: the section \"What the figures mean\" of README.md.\n"
      "Exit code 1 when a check fails, or a prompt cannot be answered (the others are checked all the same).\n"
      "Example: tandem check --config configs/model-draft.yaml --prompts bench/prompts/speed.jsonl --limit 3");
  command->callback([a, &chosen] { chosen = [a] { return run(*a); }; });
}

}  // namespace tandem
