// The device behind memory.h, through the CUDA runtime.
#include "kernels/cuda/memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "src/base/error.h"

namespace tandem::cuda {

void fail_cuda(cudaError_t status, std::string_view what) {
  cudaGetLastError();  // so that the next launch does not report this failure as its own
  if (status == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
      fail(ErrorKind::device, "cuda: {}: out of device memory, {} of {} bytes free", what, free, total);
    }
  }
  fail(ErrorKind::device, "cuda: {}: {}", what, cudaGetErrorString(status));
}

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  check_cuda(cudaMalloc(&data, bytes), fmt::format("cudaMalloc of {} bytes", bytes));
  data_ = static_cast<std::byte*>(data);
}

// A failure here is one of the work before, which its own synchronisation reports.
DeviceMemory::~DeviceMemory() { cudaFree(data_); }

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  check_cuda(cudaMallocHost(&data, bytes), fmt::format("cudaMallocHost of {} bytes", bytes));
  data_ = static_cast<std::byte*>(data);
}

PinnedMemory::~PinnedMemory() { cudaFreeHost(data_); }

Stream::Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
Stream::~Stream() { cudaStreamDestroy(stream_); }
void Stream::synchronize() const { tandem::cuda::synchronize(stream_); }

void synchronize(cudaStream_t stream) { check_cuda(cudaStreamSynchronize(stream), "work on the device"); }

void copy_to_device(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copy to the device");
}

void copy_to_host(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copy from the device");
}

void copy_within(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0)
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy within the device");
}

void copy_rows_to_host(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t row_bytes,
                       std::size_t rows, cudaStream_t stream) {
  if (rows == 0 || row_bytes == 0) return;
  check_cuda(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, row_bytes, rows, cudaMemcpyDeviceToHost, stream),
             "copy of rows from the device");
}

void fill(void* to, std::uint8_t value, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) check_cuda(cudaMemsetAsync(to, value, bytes, stream), "fill");
}

DeviceBytes device_bytes() {
  DeviceBytes bytes{};
  check_cuda(cudaMemGetInfo(&bytes.free, &bytes.total), "cudaMemGetInfo");
  return bytes;
}

bool device_present(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();  // so that no later call reports it again
    int driver = 0;      // 0: there is none, which the runtime reports as one that is too old
    const bool known = cudaDriverGetVersion(&driver) == cudaSuccess;
    why = known && driver == 0 ? "no NVIDIA driver is installed" : cudaGetErrorString(status);
    return false;
  }
  if (count == 0) {
    why = "no CUDA device";
    return false;
  }
  const DeviceInfo info = device_info();
  if (info.major < 8) {
    why = fmt::format("{} has compute capability {}.{}, this build needs 8.0", info.name, info.major, info.minor);
    return false;
  }
  return true;
}

DeviceInfo device_info() {
  int device = 0, clock_khz = 0, bus_bits = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  if (cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device) != cudaSuccess) {
    cudaGetLastError();
    clock_khz = 0;
  }
  // Two transfers a clock.
  const auto bandwidth =
      std::size_t{2} * 1000 * static_cast<std::size_t>(clock_khz) * static_cast<std::size_t>(bus_bits) / 8;
  return {properties.name,
          properties.major,
          properties.minor,
          properties.multiProcessorCount,
          properties.sharedMemPerBlockOptin,
          bandwidth};
}

}  // namespace tandem::cuda
