// check_equal: losslessness on real models. Answers the prompts at temperature 0 plainly and with every drafter, among
// them random trees, and compares the ids. Exit code 1 when one differs, 77 when it was skipped.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/base/error.h"
#include "src/engine/session.h"
#include "tests/engine/random_tree_drafter.h"
#include "tests/model_folder.h"

namespace tandem::test {
namespace {

constexpr int kSkipped = 77;

struct Arguments {
  std::string config = TANDEM_SOURCE_DIR "/configs/quickstart.yaml";
  std::string prompts = TANDEM_SOURCE_DIR "/bench/prompts/speed.jsonl";
  int limit = 0;  // prompts; 0 = all
  int max_tokens = 0;
  std::vector<int> threads = {1, 2};
  bool needs_pair = false;
};

struct Prompt {
  std::string id;
  std::vector<ChatMessage> messages;
  int max_tokens;
};

std::vector<Prompt> read_prompts(const Arguments& a) {
  std::ifstream file(a.prompts);
  std::vector<Prompt> prompts;
  for (std::string line; std::getline(file, line) && (a.limit == 0 || static_cast<int>(prompts.size()) < a.limit);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    Prompt prompt{row.at("id"), {}, row.at("max_tokens")};
    for (const nlohmann::json& message : row.at("messages")) {
      prompt.messages.push_back({message.at("role"), message.at("content")});
    }
    if (a.max_tokens > 0) prompt.max_tokens = std::min(prompt.max_tokens, a.max_tokens);
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) fail(ErrorKind::usage, "{}: expected prompts, got none", a.prompts);
  return prompts;
}

// What both policies allow: that of the engine, and a fixed length.
class Shortened final : public LengthPolicy {
 public:
  Shortened(LengthPolicy& outer, int length) : outer_(outer), own_(length, kMaxTreeNodes, 0) {
    own_.begin_step({kMaxTreeNodes, kMaxTreeNodes});
  }
  void begin_step(const DraftBudget& budget) override { own_.begin_step(budget); }
  bool allow_draft_step(const DraftQuestion& question) override {
    return own_.allow_draft_step(question) && outer_.allow_draft_step(question);
  }
  bool allow_row(const DraftQuestion& question) override {
    return own_.allow_row(question) && outer_.allow_row(question);
  }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "shortened"; }

 private:
  LengthPolicy& outer_;
  FixedLength own_;
};

struct Setting {
  std::string kind;  // none, model, ngram, random-tree
  int length;
  std::string name() const { return kind == "none" ? kind : fmt::format("{}-{}", kind, length); }
};

// Drafts by the setting of the moment, so that models are loaded once for all of them.
class SwitchingDrafter final : public Drafter {
 public:
  SwitchingDrafter(const DrafterSetup& setup, std::vector<TokenId> alphabet) : trees_(1, std::move(alphabet)) {
    DrafterSetup each = setup;
    for (const char* kind : {"none", "ngram", "model"}) {
      if (kind == std::string_view("model") && setup.model == nullptr) continue;
      each.kind = kind;
      drafters_[kind] = make_drafter(each);
    }
  }

  // `truth`: the sequence that random trees take half of their guesses from.
  void use(const Setting& setting, std::vector<TokenId> truth) {
    current_ = setting.kind == "random-tree" ? &trees_ : drafters_.at(setting.kind).get();
    length_ = setting.length;
    trees_.set_truth(std::move(truth));
  }

  const TokenTree& propose(Context& context, LengthPolicy& policy) override {
    Shortened shortened(policy, length_);
    return current_->propose(context, shortened);
  }
  void observe(const Observation& observation, const Context& context) override {
    current_->observe(observation, context);
  }
  std::string take_warning() override { return current_->take_warning(); }
  void reset() override { current_->reset(); }
  std::string_view name() const override { return current_->name(); }

 private:
  std::map<std::string, std::unique_ptr<Drafter>, std::less<>> drafters_;
  RandomTreeDrafter trees_;
  Drafter* current_ = &trees_;
  int length_ = 0;
};

// Both models loaded once, for one number of threads.
class Checker {
 public:
  Checker(const Arguments& a, int threads) : threads_(threads), session_(config(a, threads), false, factory()) {}

  std::vector<Setting> settings() const {
    std::vector<Setting> settings{{"none", 0}};
    if (session_.draft() != nullptr) settings.insert(settings.end(), {{"model", 1}, {"model", 4}, {"model", 8}});
    settings.insert(settings.end(), {{"ngram", 6}, {"random-tree", 63}});
    return settings;
  }

  // Answers one prompt; an empty `truth` becomes the answer. Returns whether it equals the truth.
  bool check(const Prompt& prompt, const Setting& setting, std::vector<TokenId>& truth) {
    const std::vector<TokenId> ids = encode(prompt);
    std::vector<TokenId> sequence = ids;
    sequence.insert(sequence.end(), truth.begin(), truth.end());
    drafter_->use(setting, std::move(sequence));
    session_.engine().reset();
    StopRules rules = session_.stop_rules();
    rules.max_tokens = prompt.max_tokens;
    Generation generation(session_.engine(), session_.tokenizer(), ids, std::move(rules));
    while (generation.advance()) continue;
    const GenerationResult& result = generation.result();
    if (truth.empty()) truth = result.ids;
    const auto [at, expected] = std::mismatch(result.ids.begin(), result.ids.end(), truth.begin(), truth.end());
    const bool equal = at == result.ids.end() && expected == truth.end();
    const DraftCounts& counts = result.metrics.total;
    const double acceptance =
        counts.tested > 0 ? static_cast<double>(counts.accepted) / static_cast<double>(counts.tested) : 0;
    fmt::print("{:<12} threads {} {:<14} {:4} tokens {:4} steps  acceptance {:.2f}  {}\n", prompt.id, threads_,
               setting.name(), result.ids.size(), result.metrics.steps, acceptance,
               equal ? "equal" : fmt::format("DIFFERS at index {}", at - result.ids.begin()));
    std::fflush(stdout);
    return equal;
  }

 private:
  static Config config(const Arguments& a, int threads) {
    Options options = Options::from_file(a.config);
    for (const char* setting : {"sampling.temperature=0", "draft.length=63", "draft.max_nodes=64"}) {
      options.set(setting);
    }
    options.set(fmt::format("runtime.threads={}", threads));
    return read_config(std::move(options));
  }

  Session::DrafterFactory factory() {
    return [this](const DrafterSetup& setup) {
      std::vector<TokenId> alphabet(1000);  // the commonest tokens of a byte-level vocabulary come first
      std::iota(alphabet.begin(), alphabet.end(), 0);
      auto drafter = std::make_unique<SwitchingDrafter>(setup, std::move(alphabet));
      drafter_ = drafter.get();
      return drafter;
    };
  }

  std::vector<TokenId> encode(const Prompt& prompt) const {
    if (session_.chat()) return session_.encode_chat(prompt.messages);
    std::string text;
    for (const ChatMessage& message : prompt.messages) text += message.content + "\n";
    return session_.encode_raw(text);
  }

  int threads_;
  SwitchingDrafter* drafter_ = nullptr;  // the session's own
  Session session_;
};

int run(const Arguments& a) {
  if (a.needs_pair && small_models_only()) {
    fmt::print("check_equal: skipped (TANDEM_TEST_MODELS=small leaves the pair out)\n");
    return kSkipped;
  }
  const std::vector<Prompt> prompts = read_prompts(a);
  std::vector<std::vector<TokenId>> truths(prompts.size());
  int comparisons = 0, differ = 0;
  for (const int threads : a.threads) {
    Checker checker(a, threads);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      for (const Setting& setting : checker.settings()) {
        const bool is_truth = truths[i].empty();
        const bool equal = checker.check(prompts[i], setting, truths[i]);
        if (is_truth) continue;
        ++comparisons;
        differ += !equal;
      }
    }
  }
  fmt::print("check_equal: {} comparisons, {} differ\n", comparisons, differ);
  return differ == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  tandem::test::Arguments a;
  CLI::App program("Compares drafted with plain greedy decoding, id by id");
  program.add_option("--config", a.config, "Models and settings; draft.length and temperature are set here");
  program.add_option("--prompts", a.prompts, "JSON lines with id, messages and max_tokens");
  program.add_option("--limit", a.limit, "Only the first prompts; 0 = all");
  program.add_option("--max-tokens", a.max_tokens, "Shorter answers; 0 = as the prompts say");
  program.add_option("--threads", a.threads, "Thread counts to run, e.g. 1,2")->delimiter(',');
  program.add_flag("--needs-pair", a.needs_pair, "Skip when TANDEM_TEST_MODELS=small");
  CLI11_PARSE(program, argc, argv);
  try {
    return tandem::test::run(a);
  } catch (const std::exception& error) {
    fmt::print(stderr, "check_equal: {}\n", error.what());
    return 1;
  }
}
