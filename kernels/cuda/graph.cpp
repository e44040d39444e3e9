#include "kernels/cuda/graph.h"

#include <cuda_runtime_api.h>

namespace tandem::cuda {

struct Graph::State {
  State() = default;
  ~State() {
    if (instance != nullptr) cudaGraphExecDestroy(instance);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  cudaGraphExec_t instance = nullptr;
};

Graph::~Graph() { delete state_; }

Graph Graph::record(const Stream& stream, const std::function<void()>& queue_work) {
  check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "start of recording");
  cudaGraph_t recorded = nullptr;
  try {
    queue_work();
  } catch (...) {
    cudaStreamEndCapture(stream.get(), &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    cudaGetLastError();  // of a recording that the failure has ended already
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream.get(), &recorded), "recording of a step");
  Graph graph;
  graph.state_ = new State;
  const cudaError_t status = cudaGraphInstantiate(&graph.state_->instance, recorded, 0);
  cudaGraphDestroy(recorded);
  check_cuda(status, "making of a graph");
  return graph;
}

void Graph::replay(const Stream& stream) const {
  check_cuda(cudaGraphLaunch(state_->instance, stream.get()), "launch of a graph");
}

}  // namespace tandem::cuda
