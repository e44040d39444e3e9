// What a step tells its kernels besides addresses and shapes: ids, positions, places, masks. Kernels read all of it
// from device memory, so that a step's launches differ in nothing but that memory's content.
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/memory.h"
#include "kernels/cuda/step_queue.h"

namespace tandem::TANDEM_GPU {

// Page-locked memory that small copies to the device start from, one behind the other.
class Staging {
 public:
  explicit Staging(const Stream& stream) : stream_(stream), memory_(kBytes) {}

  void copy(void* to, const void* from, std::size_t bytes) {
    if (used_ + bytes > kBytes) {
      stream_.synchronize();
      drained();
    }
    if (bytes > kBytes) {
      copy_to_device(to, from, bytes, stream_.get());
      return stream_.synchronize();
    }
    std::memcpy(memory_.data() + used_, from, bytes);
    copy_to_device(to, memory_.data() + used_, bytes, stream_.get());
    used_ += bytes;
  }
  // Called when the stream has been synchronised: nothing is read from here any more.
  void drained() { used_ = 0; }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 10;
  const Stream& stream_;
  PinnedMemory memory_;
  std::size_t used_ = 0;
};

// A list in device memory, copied only when it differs from what lies there: every layer of a step asks for the same.
// Copies go ahead of the launches that wait in the queue, which are run first when they read the list.
template <typename T>
class DeviceList {
 public:
  const T* put(std::span<const T> values, Staging& staging, StepQueue& queue) {
    const bool fits = values.size() <= capacity_;
    if (!fits || values.size() > there_.size() || !std::equal(values.begin(), values.end(), there_.begin())) {
      if (read_in_ == queue.epoch()) queue.flush();
      if (!fits) {
        // Addresses are arguments of launches: a pass of a tile has room from the start.
        capacity_ = std::max({values.size(), 2 * capacity_, kLeast});
        memory_ = DeviceMemory(capacity_ * sizeof(T));
      }
      there_.assign(values.begin(), values.end());
      staging.copy(memory_.data(), values.data(), values.size_bytes());
    }
    read_in_ = queue.epoch();
    return memory_.as<const T>();
  }

 private:
  static constexpr std::size_t kLeast = 128;
  DeviceMemory memory_;
  std::size_t capacity_ = 0;
  std::vector<T> there_;
  std::uint64_t read_in_ = ~std::uint64_t{0};  // the queue's epoch when a launch that reads the list was added last
};

}  // namespace tandem::TANDEM_GPU
