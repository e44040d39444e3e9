// What passes, draft steps and sampling took while an answer was recorded, as a function of rows.
#pragma once
#include <vector>

#include "src/engine/recording.h"

namespace tandem {

// How many times a pass over one row a pass over several takes, from all answers of a recording: each was timed beside
// a single row, so that a machine whose memory changes its mood in between changes no ratio.
class RowRatios {
 public:
  void add(const std::vector<RecordedPass>& passes);
  // A curve that takes `single` seconds for one row. `reading`: rows and seconds of one long pass, e.g. over a prompt;
  // one of no rows says nothing.
  PassCosts curve(double single, RowSeconds reading = {0, 0}) const;

 private:
  struct Ratios {
    int rows;
    std::vector<double> values;
  };
  std::vector<Ratios> by_rows_;  // ascending
};

// Of one answer.
struct ReplayCosts {
  PassCosts target, draft;
  double sample = 0, other = 0;  // seconds a row that is drawn from, and a step

  double plain_step() const { return target.seconds(1) + sample + other; }
};

// `draft_share`: seconds of a draft pass over those of the recorded one, for a head of another size.
ReplayCosts replay_costs(const RecordedAnswer& answer, const RowRatios& target, const RowRatios& draft,
                         double draft_share);

}  // namespace tandem
