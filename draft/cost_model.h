// What drafting costs: seconds of a forward pass by its rows, for the target and for the draft.
#pragma once
#include <array>
#include <span>

#include "src/base/types.h"

namespace tandem {

struct RowSeconds {
  int rows;
  double seconds;
};

// The curve T(rows) of one model. Never falls with more rows: what looks so is noise, and the larger pass counts for
// both.
class PassCosts {
 public:
  PassCosts() = default;  // costs nothing
  // `measured`: rows ascending and positive, seconds positive. Linear between them; beyond the last one, and beyond
  // kMaxTreeNodes, it goes on with the slope found there. Throws Error(input) for anything else.
  explicit PassCosts(std::span<const RowSeconds> measured);

  double seconds(int rows) const;

  // A pass took this long: moves the whole curve a little, the first passes with more weight, and this row count a
  // little more together with those that were not seen of late (exponential averages). So the curve follows the
  // machine's state and the growing context, and one that was saved in another state is put right within some steps.
  void observe(int rows, double seconds);
  // Several passes together took this many times what the curve says: moves all of it.
  void observe_ratio(double ratio);

 private:
  bool seen_of_late(int rows) const;
  void keep_rising(int rows);

  std::array<double, kMaxTreeNodes + 1> by_rows_{};
  double seconds_a_row_beyond_ = 0;
  std::array<double, kMaxTreeNodes + 1> measured_{};  // by_rows_ as it came
  std::array<int, kMaxTreeNodes + 1> last_seen_{};    // pass that had this many rows, counted from 1; 0: none
  int passes_seen_ = 0;
};

struct CostModel {
  PassCosts target;  // one row a node of the tree
  PassCosts draft;   // one row a token that the draft has not seen: a step, or catching up
};

}  // namespace tandem
