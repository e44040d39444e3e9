// What a sweep compares: settings of drafts, rule and temperature on top of one config, none of them twice.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "src/engine/config.h"

namespace tandem {

// Values as `--set` takes them; an empty list leaves a key as the config has it.
struct SweepGrid {
  std::vector<std::string> kinds{}, lengths{}, thresholds{}, rules{}, temperatures{};
};

// The config without the folders of its models and of the constraint's file, which say nothing about answers.
Config without_places(Config config);

// One setting: the very config that `tandem generate` would run.
struct SweepCell {
  Config config;

  // Names the setting in reports, e.g. "model, length 4, threshold 0.4, rule block, temperature 0.8".
  std::string name() const;
  // Twelve hexadecimal digits of everything in the config but the files' paths: what a journal files answers under.
  std::string key() const;
  bool plain() const { return config.draft.kind == "none"; }
  // Whether its answers must be those of plain decoding for the same seed, byte for byte.
  bool promises_plain_text() const;
};

struct SweepCells {
  std::vector<SweepCell> cells;    // in the order of the grid
  std::vector<std::string> notes;  // what was left out because it would be another cell's run again, and why
};

// Every cell of the grid. `read` gives the config with these `key=value` settings on top of everything else, or throws.
// Left out, with a note: length 0 and kind none but for one plain cell a temperature; n-gram drafts at any but the
// first threshold, which is for draft models; any but the first rule at temperature 0, where all accept alike; what was
// listed twice. Throws Error(usage) for a time limit, under which answers cannot be compared, and what `read` throws.
SweepCells make_cells(const SweepGrid& grid, const std::function<Config(const std::vector<std::string>&)>& read);

// The config of a session in which every cell can run: with draft model, corpus and measured costs when one needs them.
Config session_config(const std::vector<SweepCell>& cells);

}  // namespace tandem
