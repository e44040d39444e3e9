// The host twin of kernels/cuda/graph.cpp: a list of what was queued.
#include "kernels/cuda/graph.h"
#include "kernels/simt/stream.h"

namespace tandem::cuda_simt {

struct Graph::State {
  std::vector<simt::Work> work;
};

Graph::~Graph() { delete state_; }

Graph Graph::record(const Stream& stream, const std::function<void()>& queue_work) {
  simt::StreamQueue& queue = *simt::StreamQueue::of(stream.get());
  queue.begin_recording();
  try {
    queue_work();
  } catch (...) {
    queue.end_recording();
    throw;
  }
  Graph graph;
  graph.state_ = new State{queue.end_recording()};
  return graph;
}

void Graph::replay(const Stream& stream) const {
  for (const simt::Work& work : state_->work) simt::enqueue(stream.get(), work);
}

}  // namespace tandem::cuda_simt
