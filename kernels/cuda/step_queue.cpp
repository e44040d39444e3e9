#include "kernels/cuda/step_queue.h"

#include <algorithm>

namespace tandem::TANDEM_GPU {

std::uint64_t StepQueue::hash_of(const Bytes& launches) {
  std::uint64_t hash = launches.size();
  for (std::size_t i = 0; i < launches.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, launches.data() + i, sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

void StepQueue::run(const Bytes& launches) const {
  for (std::size_t at = 0; at < launches.size();) {
    Header header;
    std::memcpy(&header, launches.data() + at, sizeof header);
    header.call(launches.data() + at + aligned(sizeof(Header)), stream_.get());
    at += header.bytes;
  }
}

// A step is captured when it comes the second time: most that come once, like the chunks of a prompt, do not come
// again.
void StepQueue::remember(std::uint64_t hash, const Bytes& launches) {
  const auto seen = std::ranges::find(seen_once_, hash);
  if (seen == seen_once_.end()) {
    if (seen_once_.size() == kMostGraphs) seen_once_.erase(seen_once_.begin());
    seen_once_.push_back(hash);
    return;
  }
  seen_once_.erase(seen);
  if (known_.size() == kMostGraphs) {
    stream_.synchronize();  // the one that goes may be running
    known_.erase(std::ranges::min_element(known_, {}, &Known::last_use));
  }
  known_.push_back({hash, epoch_, launches, Graph::record(stream_, [this, launches] { run(launches); })});
}

void StepQueue::replay_or_run(const Bytes& launches) {
  if (!graphs_) return run(launches);
  const std::uint64_t hash = hash_of(launches);
  const auto same = [&](const Known& known) { return known.hash == hash && known.launches == launches; };
  auto known = std::ranges::find_if(known_, same);
  if (known == known_.end()) {
    remember(hash, launches);
    known = std::ranges::find_if(known_, same);
    if (known == known_.end()) return run(launches);
  }
  known->last_use = epoch_;
  ++replays_;
  known->graph.replay(stream_);
}

void StepQueue::flush() {
  if (waiting_.empty()) return;
  ++epoch_;
  std::swap(waiting_, running_);
  waiting_.clear();
  replay_or_run(running_);
}

void StepQueue::settle() noexcept {
  try {
    flush();
  } catch (...) {
    waiting_.clear();
  }
}

}  // namespace tandem::TANDEM_GPU
