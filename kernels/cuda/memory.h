// Memory, copies and streams of the device. In the emulation (kernels/simt/memory_host.cpp) device memory is host
// memory between red zones, and every copy is done when the call returns.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/cuda/platform.h"

namespace tandem::TANDEM_GPU {

// Device memory, aligned to 256 bytes, not cleared; freed with the object, after all work queued on the device. Throws
// Error(device) naming the bytes needed and free.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Page-locked host memory: copies from and to it overlap with the device's work and may be captured in a graph.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A queue of work in order; what is queued on different streams may overlap.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize() const;  // as below

 private:
  cudaStream_t stream_ = nullptr;
};

// Waits for all work queued on a stream so far. Throws Error(device) for any that failed.
void synchronize(cudaStream_t stream);

// Queued copies. Host memory, pinned or not, lives and keeps its content until Stream::synchronize(): devices that
// share the host's page tables need not stage it. copy_within(): no overlap.
void copy_to_device(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
void copy_to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
void copy_within(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
// Rows of `row_bytes` each, `to_pitch` and `from_pitch` bytes apart, from the device to the host.
void copy_rows_to_host(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t row_bytes,
                       std::size_t rows, cudaStream_t stream);
// Sets every byte.
void fill(void* to, std::uint8_t value, std::size_t bytes, cudaStream_t stream);

struct DeviceBytes {
  std::size_t free, total;
};
DeviceBytes device_bytes();

struct DeviceInfo {
  std::string name;
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t shared_block_bytes;  // the most dynamic shared memory of one block
  std::size_t bytes_per_second;    // peak of its memory; 0 where the driver does not tell
};

// Whether there is a device that the code of this build runs on; if not, `why` says what is missing.
bool device_present(std::string& why);
// Of the current device. Throws Error(device) when there is none.
DeviceInfo device_info();

}  // namespace tandem::TANDEM_GPU
