// How often a draft of a given confidence is accepted, learned from what was tested.
#pragma once
#include <array>

#include "src/base/token_tree.h"

namespace tandem {

// One table a source, and one for siblings, whose confidence and acceptance are those after the earlier children were
// rejected. An estimate is a bin's rate with the confidence as prior, as far as the source's confidences were worth
// something so far, scaled by the source's recent luck: bins remember long and give the shape, luck forgets soon and
// follows the text.
class Calibration {
 public:
  // Probability that a child of this confidence is accepted, given that its parent was and no earlier sibling.
  double acceptance(DraftSource source, bool sibling, double confidence) const;
  // What a first child whose confidence is not known yet may turn out to be: the candidates asked about of late.
  struct Prospect {
    double share, acceptance;
  };
  static constexpr int kBins = 11;
  using Prospects = std::array<Prospect, kBins>;
  Prospects prospects(DraftSource source) const;
  // A candidate of this confidence came up, whether or not it is drafted.
  void ask(DraftSource source, double confidence);
  // A child was tested.
  void observe(DraftSource source, bool sibling, double confidence, bool accepted);
  // The source foretold a token of a text that was there before: tells what its confidences are worth.
  void observe_trial(DraftSource source, double confidence, bool came);

 private:
  struct Rate {
    double accepted = 0, tested = 0;
  };
  static constexpr std::array<double, kBins> kPriorAsked{0.3, 0.5, 0.6, 0.1, 0.1, 0.1, 0.1, 0.2, 0.4, 0.4, 1.2};
  struct Table {
    std::array<Rate, kBins> bins{};
    double confidences = 0, accepted = 0;           // sums over the tests
    std::array<double, kBins> asked = kPriorAsked;  // candidates of late, by bin
    double expected = 0, came = 0, variance = 0;    // acceptances foretold and come of late, and their chance
  };
  static double middle_of(int bin);
  static int bin_of(double confidence);
  static double trust(const Table& table);
  static double rate(const Table& table, double confidence);
  static double luck(const Table& table);
  const Table& table(DraftSource source, bool sibling) const { return tables_[static_cast<int>(source)][sibling]; }

  std::array<std::array<Table, 2>, kDraftSources> tables_{};
};

}  // namespace tandem
