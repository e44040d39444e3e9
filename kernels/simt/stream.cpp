#include "kernels/simt/stream.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace tandem::simt {
namespace {

// What the streams of a process share. Streams may be used by different threads, each by one at a time.
struct Device {
  std::mutex mutex;
  std::vector<StreamQueue*> streams;
  std::map<const std::byte*, std::size_t> pinned;
  std::exception_ptr failure;  // of work that something finished which could not report it
};

// Never destroyed, as heap().
Device& device() {
  static Device& instance = *new Device;
  return instance;
}

std::exception_ptr exchange_failure(std::exception_ptr failure) {
  const std::lock_guard lock(device().mutex);
  return std::exchange(device().failure, std::move(failure));
}

}  // namespace

StreamQueue::StreamQueue() {
  const std::lock_guard lock(device().mutex);
  device().streams.push_back(this);
}

StreamQueue::~StreamQueue() {
  const std::lock_guard lock(device().mutex);
  std::erase(device().streams, this);
}

void StreamQueue::add(Work work) { (recording_ ? recorded_ : queued_).push_back(std::move(work)); }

void StreamQueue::finish() {
  if (const std::exception_ptr failure = exchange_failure(nullptr)) std::rethrow_exception(failure);
  for (const Work& work : std::exchange(queued_, {})) work();
}

void StreamQueue::begin_recording() {
  recording_ = true;
  recorded_.clear();
}

std::vector<Work> StreamQueue::end_recording() {
  recording_ = false;
  return std::exchange(recorded_, {});
}

void enqueue(cudaStream_t stream, Work work) {
  stream == nullptr ? work() : StreamQueue::of(stream)->add(std::move(work));
}

void finish_all_streams() {
  std::vector<StreamQueue*> streams;
  {
    const std::lock_guard lock(device().mutex);
    streams = device().streams;
  }
  for (StreamQueue* stream : streams) {
    try {
      stream->finish();
    } catch (...) {
      exchange_failure(std::current_exception());
    }
  }
}

bool any_stream_records() {
  const std::lock_guard lock(device().mutex);
  return std::any_of(device().streams.begin(), device().streams.end(),
                     [](const StreamQueue* stream) { return stream->recording(); });
}

void add_pinned(const void* data, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  device().pinned.emplace(static_cast<const std::byte*>(data), bytes);
}

void remove_pinned(const void* data) {
  const std::lock_guard lock(device().mutex);
  device().pinned.erase(static_cast<const std::byte*>(data));
}

bool is_pinned(const void* data, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  const auto* first = static_cast<const std::byte*>(data);
  const auto above = device().pinned.upper_bound(first);
  if (above == device().pinned.begin()) return false;
  const auto& [begin, size] = *std::prev(above);
  return first + bytes <= begin + size;
}

}  // namespace tandem::simt
