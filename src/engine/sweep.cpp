#include "src/engine/sweep.h"

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "src/base/error.h"
#include "src/engine/cost_table.h"
#include "src/engine/file_hash.h"
#include "src/engine/report.h"

namespace tandem {
namespace {

// The first token that differs, counted from 0; nullopt: the answers are equal.
std::optional<int> first_difference(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [at, other] = std::ranges::mismatch(a, b);
  if (at == a.end() && other == b.end()) return std::nullopt;
  return static_cast<int>(at - a.begin());
}

}  // namespace

std::string SweepPrompt::key() const {
  return fmt::format("{} {}", id, text_sha256(fmt::format("{} {}", fmt::join(ids, ","), max_tokens)).substr(0, 12));
}

std::vector<SweepTask> sweep_order(std::size_t cells, std::size_t prompts, int repeats, std::uint64_t seed) {
  std::vector<SweepTask> order;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    // The standard fixes what the generator gives, but not what std::shuffle makes of it.
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(repeat));
    const std::size_t begin = order.size();
    for (std::size_t cell = 0; cell < cells; ++cell) {
      for (std::size_t prompt = 0; prompt < prompts; ++prompt) order.push_back({cell, prompt, repeat, false});
    }
    for (std::size_t left = order.size() - begin; left > 0; --left) {
      std::swap(order[begin + left - 1], order[begin + random() % left]);
      order[begin + left - 1].drafted_first = random() % 2 == 1;
    }
  }
  return order;
}

std::vector<SweepTask> remaining(std::vector<SweepTask> order, std::span<const SweepCell> cells,
                                 std::span<const SweepPrompt> prompts, std::span<const SweepPair> pairs) {
  std::set<std::tuple<std::string, std::string, int>> done;
  for (const SweepPair& pair : pairs) {
    if (!pair.failed()) done.insert({pair.cell, pair.prompt, pair.repeat});
  }
  std::vector<std::string> cell_keys, prompt_keys;
  for (const SweepCell& cell : cells) cell_keys.push_back(cell.key());
  for (const SweepPrompt& prompt : prompts) prompt_keys.push_back(prompt.key());
  std::erase_if(order, [&](const SweepTask& task) {
    return done.contains({cell_keys[task.cell], prompt_keys[task.prompt], task.repeat});
  });
  return order;
}

GenerationResult Sweep::answer(const SweepTask& task, bool drafted, const std::atomic<bool>& cancel,
                               std::string& warning) const {
  const SweepPrompt& prompt = prompts_[task.prompt];
  EngineChoice choice = session_.engine_for(cells_[task.cell].config);
  if (!drafted) choice.draft_kind = "none";
  choice.verifier = make_rule_(choice.rule);
  choice.seed = seed_ + static_cast<std::uint64_t>(task.repeat);
  // Small caches are made quickly; no step reaches further than this.
  choice.context = std::min(choice.context, static_cast<int>(prompt.ids.size()) + prompt.max_tokens + kMaxTreeNodes);
  StopRules rules = session_.stop_rules(&cancel);
  rules.max_tokens = prompt.max_tokens;
  Engine engine = session_.make_engine(std::move(choice));
  Generation generation(engine, session_.tokenizer(), prompt.ids, std::move(rules));
  while (generation.advance()) continue;
  if (std::string said = engine.drafter().take_warning(); !said.empty()) warning = std::move(said);
  return generation.result();
}

std::optional<SweepPair> Sweep::run(const SweepTask& task, const std::atomic<bool>& cancel) const {
  const SweepCell& cell = cells_[task.cell];
  SweepPair pair;
  pair.cell = cell.key();
  pair.prompt = prompts_[task.prompt].key();
  pair.repeat = task.repeat;
  pair.drafted_first = task.drafted_first;
  std::vector<TokenId> ids[2];  // plain, drafted
  try {
    for (const bool drafted : {task.drafted_first, !task.drafted_first}) {
      const GenerationResult result = answer(task, drafted, cancel, pair.warning);
      if (result.stop_reason == StopReason::cancel) return std::nullopt;
      (drafted ? pair.drafted : pair.plain) = SweepRun(result);
      ids[drafted] = result.ids;
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric && error.kind() != ErrorKind::input) throw;
    pair.error = error.what();
    return pair;
  }
  if (cell.promises_plain_text()) pair.differs_at = first_difference(ids[0], ids[1]);
  return pair;
}

nlohmann::ordered_json sweep_identity(const Session& session, std::uint64_t seed) {
  Config config = session.config();
  const std::string draft = config.draft.model;
  const std::string constraint = config.constraint.file();
  config = without_places(std::move(config));
  config.draft.kind = "none";
  config.draft.length = 0;
  config.draft.max_nodes = 1;
  config.draft.min_probability = 0;
  config.verify = {};
  config.sampling.temperature = 0;
  const auto hash = [](const std::string& path) {
    return path.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(file_sha256(path));
  };
  return {{"version", kVersion},
          {"target", file_sha256(session.target().path())},
          {"draft", hash(draft)},
          {"constraint", hash(constraint)},
          {"backend", session.backend().name()},
          {"threads", session.backend().threads()},
          {"processor", processor_name()},
          {"context", session.context()},
          {"seed", seed},
          {"config", to_yaml(config)}};
}

}  // namespace tandem
