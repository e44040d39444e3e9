// Runs the pairs of a sweep: each prompt under each setting, and plainly next to it, in a random order.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/session.h"
#include "src/engine/sweep_cells.h"
#include "src/engine/sweep_pair.h"

namespace tandem {

struct SweepPrompt {
  std::string id, task;
  std::vector<TokenId> ids;
  int max_tokens;  // of its answers

  // Twelve hexadecimal digits of ids and max_tokens, after the prompt's name.
  std::string key() const;
};

// One pair to run, by the indices of its cell and prompt.
struct SweepTask {
  std::size_t cell, prompt;
  int repeat;
  bool drafted_first;  // of the two answers
};

// Every cell with every prompt `repeats` times, one whole repeat after the other, each in an order that the seed
// shuffles: a machine's moods then hit all cells alike.
std::vector<SweepTask> sweep_order(std::size_t cells, std::size_t prompts, int repeats, std::uint64_t seed);

// Those of `order` that no pair has answered yet; a pair that failed is tried again.
std::vector<SweepTask> remaining(std::vector<SweepTask> order, std::span<const SweepCell> cells,
                                 std::span<const SweepPrompt> prompts, std::span<const SweepPair> pairs);

class Sweep {
 public:
  using RuleFactory = std::function<std::unique_ptr<Verifier>(std::string_view)>;

  // Draws of repeat r have the seed `seed` + r, plain and drafted. `make_rule`: makes a cell's rule by its name.
  // Everything passed outlives the sweep.
  Sweep(const Session& session, std::span<const SweepCell> cells, std::span<const SweepPrompt> prompts,
        std::uint64_t seed, RuleFactory make_rule = make_verifier)
      : session_(session), cells_(cells), prompts_(prompts), seed_(seed), make_rule_(std::move(make_rule)) {}

  // The two answers of a task, by engines of their own: nothing is cached from before. An error of the models while
  // they answer (no usable logits, say) makes a failed pair. nullopt when `cancel` cut an answer.
  std::optional<SweepPair> run(const SweepTask& task, const std::atomic<bool>& cancel) const;

 private:
  GenerationResult answer(const SweepTask& task, bool drafted, const std::atomic<bool>& cancel,
                          std::string& warning) const;

  const Session& session_;
  std::span<const SweepCell> cells_;
  std::span<const SweepPrompt> prompts_;
  std::uint64_t seed_;
  RuleFactory make_rule_;
};

// What gives pairs their meaning beyond their cell and prompt: version, files of models and constraint by hash,
// machine, the config without what a sweep changes, seed. Throws Error(file) when a file cannot be read.
nlohmann::ordered_json sweep_identity(const Session& session, std::uint64_t seed);

}  // namespace tandem
