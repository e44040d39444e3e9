// What passes of the models cost on this machine: measured once, then remembered.
#pragma once
#include <string>
#include <vector>

#include "draft/cost_model.h"
#include "src/engine/model_files.h"

namespace tandem {

struct CostTable {
  std::vector<RowSeconds> target, draft;  // draft: empty without a draft model
  std::string origin;                     // "measured at load" or "saved"

  CostModel model() const;
};

// The table of these models with their backend and threads: the saved one (~/.cache/tandem/costs.json, or
// $XDG_CACHE_HOME) when there is one for the same files, machine, instruction set and threads, else measured in a
// second or two and saved. `draft_file`, `draft`: null without one.
CostTable cost_table(const ModelFile& target_file, Transformer& target, const ModelFile* draft_file,
                     Transformer* draft);

// Of this machine, as its system names it.
std::string processor_name();

}  // namespace tandem
