// Queued work of the emulated device. It is done as late as a device may do it, when something waits for the stream, so
// that a result that is read without waiting is not there yet.
#pragma once
#include <driver_types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace tandem::simt {

using Work = std::function<void()>;

class StreamQueue {
 public:
  StreamQueue();
  ~StreamQueue();
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  void add(Work work);
  // Does all work in order. Throws what the first failing piece throws; the pieces behind it are dropped, as on a
  // device.
  void finish();
  // Between the two, add() records instead of queueing.
  void begin_recording();
  std::vector<Work> end_recording();
  bool recording() const { return recording_; }

  cudaStream_t handle() { return reinterpret_cast<cudaStream_t>(this); }
  // The one of a handle; null for the null stream, on which work is done at once.
  static StreamQueue* of(cudaStream_t stream) { return reinterpret_cast<StreamQueue*>(stream); }

 private:
  std::vector<Work> queued_, recorded_;
  bool recording_ = false;
};

void enqueue(cudaStream_t stream, Work work);

// Finishes every stream, as freeing memory does; a failure is kept and thrown by the next wait. Never throws.
void finish_all_streams();

// Whether a stream of this process records: memory is neither allocated nor freed then.
bool any_stream_records();

// Page-locked host memory, which copies read when they are done and not when they are queued.
void add_pinned(const void* data, std::size_t bytes);
void remove_pinned(const void* data);
bool is_pinned(const void* data, std::size_t bytes);

}  // namespace tandem::simt
