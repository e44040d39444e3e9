// What one prompt did under one setting of a sweep and, next to it, plainly.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/metrics.h"
#include "src/engine/generation.h"

namespace tandem {

// Figures of one answer, or sums over several.
struct SweepRun {
  std::int64_t answers = 0;   // 1, or how many were added up
  std::int64_t tokens = 0;    // of the answer
  std::int64_t decoded = 0;   // after the first of each answer
  double decode_seconds = 0;  // of those: all draft time after the first token is in it
  double ttft_seconds = 0, wall_seconds = 0;
  std::int64_t steps = 0;
  DraftCounts total;
  std::vector<DraftCounts> by_position;  // index = place in the proposal, from 0
  StageSeconds seconds;
  std::string stop_reason;  // of one answer

  SweepRun() = default;
  explicit SweepRun(const GenerationResult& result);
  void add(const SweepRun& other);
  // Of a token after the first; nullopt for answers of one token.
  std::optional<double> seconds_a_token() const;
};

// An answer with the cell's drafts and a plain one of the same prompt and seed, one right after the other.
struct SweepPair {
  std::string cell;    // SweepCell::key()
  std::string prompt;  // SweepPrompt::key()
  int repeat = 0;
  int start = 0;  // which start of the command measured it, from 0: --resume starts again
  bool drafted_first = false;
  SweepRun plain, drafted;
  std::optional<int> differs_at;  // first token that differs where the texts must be equal
  std::string warning;            // of the drafter; empty = none
  std::string error;              // what made it fail; the figures mean nothing then

  bool failed() const { return !error.empty(); }
  // Plain seconds a token over drafted ones; nullopt where an answer was too short for either.
  std::optional<double> speedup() const;
};

// As the journal keeps it and the JSON report shows it.
nlohmann::ordered_json to_json(const SweepPair& pair);
// Throws nlohmann::json::exception or Error(file) for anything that to_json would not write.
SweepPair pair_from_json(const nlohmann::ordered_json& json);

// The counts and seconds of a run, for reports.
nlohmann::ordered_json to_json(const SweepRun& run);

}  // namespace tandem
