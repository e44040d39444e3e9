// Row counts of passes where kernels read them (row_count.h).
#pragma once
#include <array>
#include <span>

#include "kernels/cuda/matmul.h"
#include "kernels/cuda/step_inputs.h"

namespace tandem::TANDEM_GPU {

// A pass's rows, and those gathered from it for its logits, have a place each in device memory, so that passes of as
// many tiles differ in what the places hold and in nothing else. Not thread-safe.
class PassRows {
 public:
  // A pass of this many rows follows.
  void begin(int rows) { begin(pass, rows); }
  // What follows is about the rows that were gathered from the pass.
  void begin_gathered(int rows) { begin(gathered, rows); }

  // Rows that a launch for `rows` rows is made for: whole tiles, in a pass of up to kMaxPassRows. `parts`: they may be
  // parts of the pass's rows, as many of each (heads that are normed one by one); then whole tiles of those.
  int launched(int rows, bool parts = false) const {
    const int place = place_of(rows, parts);
    if (place == none || rows == 0) return rows;
    return place == loose ? row_slots_of(rows) : rows / rows_[place] * row_slots_of(rows_[place]);
  }

  // The count for that launch. May flush the queue, as DeviceList::put().
  RowCount count(int rows, Staging& staging, StepQueue& queue, bool parts = false) {
    const int place = place_of(rows, parts);
    if (place == none || rows == 0) return {};
    if (place == loose) rows_[loose] = rows;
    return {lists_[place].put(std::span(&rows_[place], 1), staging, queue), rows / rows_[place]};
  }

 private:
  enum Place : int { none = -1, pass, gathered, loose };

  void begin(Place place, int rows) {
    rows_[place] = rows;
    current_ = rows >= 1 && rows <= kMaxPassRows ? place : none;
  }
  Place place_of(int rows, bool parts) const {
    if (current_ != none && (rows == rows_[current_] || (parts && rows % rows_[current_] == 0))) return current_;
    return rows <= kMaxPassRows ? loose : none;
  }

  Place current_ = none;
  std::array<int, 3> rows_{};
  std::array<DeviceList<int>, 3> lists_;
};

}  // namespace tandem::TANDEM_GPU
