#include "src/model/device_rows.h"

#include <algorithm>
#include <cassert>

namespace tandem {

Logits DeviceRows::hold(Rows rows, const Picking* picking) {
  assert(rows.rows >= 1 && rows.rows <= kMaxTreeNodes && rows.stride == rows.cols);
  rows_ = rows;
  here_ = 0;
  Logits logits;
  logits.vocab = rows.cols;
  logits.source = this;
  if (picking != nullptr && picking->candidates > 0) {
    const std::span<const Candidate> best = backend_.best(rows, *picking);
    candidates_.assign(best.begin(), best.end());
    logits.candidates = candidates_;
    logits.per_row = picking->candidates;
  } else if (picking != nullptr) {
    const std::span<const TokenId> picked = backend_.pick(rows, *picking);
    std::ranges::copy(picked, picks_.begin());
    logits.picks = std::span(picks_).first(picked.size());
  }
  if (logits.picks.empty() && logits.candidates.empty()) row(0);
  return logits;
}

std::span<const float> DeviceRows::row(int i) {
  const std::size_t count = static_cast<std::size_t>(rows_.cols), row_bytes = count * sizeof(float);
  if (const std::size_t bytes = row_bytes * static_cast<std::size_t>(rows_.rows); host_bytes_ < bytes) {
    assert(here_ == 0);
    host_ = backend_.allocate_host(bytes);
    host_bytes_ = bytes;
  }
  std::byte* const to = host_->data() + row_bytes * static_cast<std::size_t>(i);
  if ((here_ >> i & 1) == 0) {
    backend_.read({to, row_bytes}, reinterpret_cast<const std::byte*>(rows_.row(i)));
    here_ |= std::uint64_t{1} << i;
  }
  return {reinterpret_cast<const float*>(to), count};
}

}  // namespace tandem
