// A step's launches and copies recorded once and queued again with one call: what remains of a launch is about the time
// that the device needs to start it.
#pragma once
#include <functional>
#include <utility>

#include "kernels/cuda/memory.h"

namespace tandem::TANDEM_GPU {

// What changes from step to step lies in device memory that the recorded work reads: a replay uses the addresses and
// the arguments of the recording. All memory it uses outlives it.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(Graph&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }

  // Records what `queue_work` queues on `stream`, without running it. No memory may be allocated or freed, nothing
  // waited for, and copies use pinned memory. Throws what `queue_work` throws, or Error(device) for work that cannot be
  // recorded.
  static Graph record(const Stream& stream, const std::function<void()>& queue_work);

  // Queues the recorded work, on any stream. Not for an empty graph.
  void replay(const Stream& stream) const;
  explicit operator bool() const { return state_ != nullptr; }

 private:
  struct State;
  State* state_ = nullptr;
};

}  // namespace tandem::TANDEM_GPU
