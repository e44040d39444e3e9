// What passes of the models cost on this machine: measured once, then remembered.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "draft/cost_model.h"
#include "src/engine/model_files.h"

namespace tandem {

struct CostTable {
  std::vector<RowSeconds> target, draft;  // draft: empty without a draft model
  bool saved = false;                     // by an earlier run; else measured by this one
  std::int64_t measured_at = 0;           // seconds since 1970, UTC

  CostModel model() const;
  std::string_view origin() const { return saved ? "saved" : "measured at load"; }
  std::string measured_at_text() const;  // "2026-11-30T01:02:03Z"
};

// The table of these models with their backend and threads: the saved one (~/.cache/tandem/costs.json, or
// $XDG_CACHE_HOME) when there is one for the same files, machine, device, instruction set and threads, else measured in
// a second or two and saved. What is damaged there counts as not there. `draft_file`, `draft`: null without one.
CostTable cost_table(const ModelFile& target_file, Transformer& target, const ModelFile* draft_file,
                     Transformer* draft);

// Takes a fresh curve of one model, rows ascending, into all saved tables that hold this model, as target or draft,
// with its backend, device and threads. Row counts that were not measured, and the other model of a pair, move by the
// ratio of new to old seconds: a pair's curves are worth something only as of one state of the machine's memory.
// Returns how many tables were changed; none when the curve has no row count of theirs.
int refresh_cost_tables(const ModelFile& file, const Transformer& model, std::span<const RowSeconds> measured);

// Of this machine, as its system names it.
std::string processor_name();

}  // namespace tandem
