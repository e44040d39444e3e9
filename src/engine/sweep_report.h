// A sweep for its readers: JSON and CSV for programs, a table with bars for people, the winner for `tandem generate`.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "src/engine/sweep_figures.h"

namespace tandem {

// A sweep's parts together; all outlive the report.
struct SweepReport {
  const Session& session;
  std::span<const SweepCell> cells;
  std::span<const SweepPrompt> prompts;
  std::span<const SweepPair> pairs;  // in the order in which they were measured
  std::span<const CellFigures> figures;
  std::string label;     // of the CSV's rows, for who puts several sweeps together
  std::string settings;  // the `--set` assignments under the config, as text
  std::uint64_t seed;
  int repeats;
  std::size_t missing;  // pairs that have not been measured yet

  std::size_t wanted() const { return cells.size() * prompts.size() * static_cast<std::size_t>(repeats); }
  std::size_t done() const { return wanted() - missing; }
  std::size_t faults() const;  // pairs that failed, or whose texts differ though they must not
};

// Settings, every cell with its figures, every pair, the winners.
nlohmann::ordered_json sweep_json(const SweepReport& report);

// One row a cell under a fixed header; empty fields where there is no figure.
std::string sweep_csv(const SweepReport& report);

// Per temperature a table, the fastest cell first, with bars; then what went wrong and who won.
std::string sweep_text(const SweepReport& report);

// The config of a winner, or of plain decoding where none won, as a file that says where it comes from.
std::string winner_yaml(const SweepReport& report, const Winner& winner);

}  // namespace tandem
