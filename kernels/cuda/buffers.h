// The memory that the backend gives away.
#pragma once
#include <algorithm>

#include "kernels/backend.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/step_queue.h"

namespace tandem::TANDEM_GPU {

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::size_t bytes, const Stream& stream, StepQueue& queue)
      : queue_(queue), memory_(std::max<std::size_t>(bytes, 1)) {
    fill(memory_.data(), 0, memory_.bytes(), stream.get());
  }
  ~DeviceBuffer() override { queue_.settle(); }  // launches that use it may be waiting
  std::byte* data() override { return memory_.data(); }

 private:
  StepQueue& queue_;
  DeviceMemory memory_;
};

class PinnedBuffer final : public Buffer {
 public:
  explicit PinnedBuffer(std::size_t bytes) : memory_(std::max<std::size_t>(bytes, 1)) {}
  std::byte* data() override { return memory_.as<std::byte>(); }

 private:
  PinnedMemory memory_;
};

}  // namespace tandem::TANDEM_GPU
