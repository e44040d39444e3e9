// What one forward pass left behind at each stage, for people who want to see it: shapes and row norms.
#pragma once
#include <string>
#include <vector>

namespace tandem {

struct StageTrace {
  std::string name;           // embedding, block 0, block 1, ..., final norm, logits
  int rows = 0, cols = 0;     // all rows of the pass; from the final norm on only those whose logits were wanted
  std::vector<double> norms;  // L2 norm of each row
};

// In the order of the pass. Final norm and logits are missing when no row's logits were wanted.
struct ForwardTrace {
  std::vector<StageTrace> stages;
};

}  // namespace tandem
