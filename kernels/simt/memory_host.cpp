// The emulated device behind kernels/cuda/memory.h.
#include <fmt/format.h>

#include <cstring>

#include "kernels/cuda/memory.h"
#include "kernels/simt/heap.h"
#include "kernels/simt/stream.h"
#include "src/base/error.h"

namespace tandem::cuda_simt {
namespace {

void check_device_range(const void* address, std::size_t bytes, const char* what) {
  if (bytes > 0 && !simt::heap().holds(address, bytes)) {
    fail(ErrorKind::device, "cuda-simt: {}: {} bytes that do not all lie in one device allocation", what, bytes);
  }
}

void refuse_while_recording(const char* what) {
  if (simt::any_stream_records()) fail(ErrorKind::device, "cuda-simt: {} while a stream records a graph", what);
}

}  // namespace

void fail_cuda(cudaError_t status, std::string_view what) {
  fail(ErrorKind::device, "cuda-simt: {}: error {}", what, static_cast<int>(status));
}

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  refuse_while_recording("allocation");
  if (bytes == 0) return;
  data_ = simt::heap().allocate(bytes);
  if (data_ == nullptr) {
    fail(ErrorKind::device, "cuda-simt: out of device memory: {} bytes needed, {} of {} free", bytes,
         simt::heap().free_bytes(), simt::heap().total_bytes());
  }
}

DeviceMemory::~DeviceMemory() {
  if (data_ == nullptr) return;
  simt::finish_all_streams();
  simt::heap().release(data_);
}

PinnedMemory::PinnedMemory(std::size_t bytes) : data_(new std::byte[bytes]), bytes_(bytes) {
  refuse_while_recording("allocation of pinned memory");
  simt::add_pinned(data_, bytes);
}

PinnedMemory::~PinnedMemory() {
  if (data_ == nullptr) return;
  simt::finish_all_streams();
  simt::remove_pinned(data_);
  delete[] data_;
}

Stream::Stream() : stream_((new simt::StreamQueue)->handle()) {}

Stream::~Stream() { delete simt::StreamQueue::of(stream_); }

void Stream::synchronize() const { tandem::cuda_simt::synchronize(stream_); }

void synchronize(cudaStream_t stream) {
  simt::StreamQueue* const queue = simt::StreamQueue::of(stream);
  if (queue == nullptr) return;
  if (queue->recording()) fail(ErrorKind::device, "cuda-simt: waiting for a stream that records a graph");
  queue->finish();
}

// Host memory is read as late as a device may read it. A graph does so at each replay, from pinned memory only.
void copy_to_device(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  check_device_range(to, bytes, "copy to the device");
  if (bytes == 0) return;
  if (!simt::is_pinned(from, bytes)) refuse_while_recording("a copy from pageable memory");
  simt::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}

void copy_to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  check_device_range(from, bytes, "copy from the device");
  if (bytes == 0) return;
  if (!simt::is_pinned(to, bytes)) refuse_while_recording("a copy to pageable memory");
  simt::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}

void copy_within(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  check_device_range(to, bytes, "copy within the device, target");
  check_device_range(from, bytes, "copy within the device, source");
  if (bytes > 0) simt::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}

void copy_rows_to_host(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t row_bytes,
                       std::size_t rows, cudaStream_t stream) {
  if (rows > 0 && (row_bytes > to_pitch || row_bytes > from_pitch)) {
    fail(ErrorKind::device, "cuda-simt: copy of rows: {} bytes a row do not fit pitches of {} and {}", row_bytes,
         to_pitch, from_pitch);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    copy_to_host(static_cast<std::byte*>(to) + row * to_pitch, static_cast<const std::byte*>(from) + row * from_pitch,
                 row_bytes, stream);
  }
}

void fill(void* to, std::uint8_t value, std::size_t bytes, cudaStream_t stream) {
  check_device_range(to, bytes, "fill");
  if (bytes > 0) simt::enqueue(stream, [=] { std::memset(to, value, bytes); });
}

DeviceBytes device_bytes() { return {simt::heap().free_bytes(), simt::heap().total_bytes()}; }

bool device_present(std::string&) { return true; }

DeviceInfo device_info() { return {"emulation", 8, 0, 1, std::size_t{163} << 10, 0}; }

}  // namespace tandem::cuda_simt
