// What the pairs of a sweep say of each setting: speed-ups with their uncertainty, and what a noisy machine did.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/sweep.h"

namespace tandem {

inline constexpr double kNoisyShare = 0.25;  // off the median by more than this is noise
inline constexpr double kConfidence = 0.95;  // of intervals
inline constexpr int kBootstrapSamples = 2000;

// Marks pairs that a noisy machine spoilt: the plain seconds a token are off by more than kNoisyShare from the median
// of the plain answers nearest in time (four before, four after, of the same start of the command, three at least), for
// one row costs much the same whatever the prompt; or the speed-up is off as much from the median of three or more
// repeats of the very same work. `pairs` in the order in which they were measured.
std::vector<bool> noisy_pairs(std::span<const SweepPair> pairs);

struct SpeedUp {
  double value;                     // geometric mean over prompts of a prompt's geometric mean over repeats
  std::optional<double> low, high;  // kConfidence; nullopt where a single pair gives none
};

// `ratios`: plain seconds a token over drafted ones, by prompt and repeat, none empty. The interval is the bootstrap's
// (percentiles of kBootstrapSamples): prompts are drawn with replacement, then repeats of each.
SpeedUp speed_up(const std::vector<std::vector<double>>& ratios, std::uint64_t seed);

struct PromptFigures {
  std::size_t prompt;        // its index
  double speedup;            // geometric mean over the repeats that count
  int pairs = 0, noisy = 0;  // with a speed-up; of those: marked
};

struct CellFigures {
  std::size_t cell;                      // its index
  int pairs = 0;                         // whole ones
  int noisy = 0;                         // marked
  int short_answers = 0;                 // pairs of answers too short for a speed-up
  std::optional<SpeedUp> speedup;        // without marked pairs where the prompt has others; nullopt: no pair has one
  std::optional<double> speedup_of_all;  // with all of them
  std::vector<PromptFigures> prompts;    // those with a speed-up
  SweepRun plain, drafted;               // sums over the pairs that count
  std::vector<const SweepPair*> differing, failed;

  const PromptFigures* worst() const;  // null without any
};

// Figures of every cell, from the pairs that belong to these cells and prompts; others are ignored. The pairs outlive
// the figures.
std::vector<CellFigures> cell_figures(std::span<const SweepCell> cells, std::span<const SweepPrompt> prompts,
                                      std::span<const SweepPair> pairs, std::uint64_t seed);

// The fastest drafting cell at each temperature, in the order of the cells; one whose texts differ cannot win.
struct Winner {
  double temperature;
  const CellFigures* figures;               // null: no drafts beat plain decoding
  std::vector<const CellFigures*> as_good;  // others whose interval reaches the winner's speed-up
};
std::vector<Winner> winners(std::span<const SweepCell> cells, std::span<const CellFigures> figures);

}  // namespace tandem
