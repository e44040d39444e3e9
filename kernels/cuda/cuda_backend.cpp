#include "kernels/cuda/cuda_backend.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kernels/cuda/backend_class.h"
#include "src/base/error.h"

namespace tandem::TANDEM_GPU {
namespace {

// TANDEM_CUDA_GRAPHS=off launches every kernel by itself: to measure what graphs bring.
bool graphs_wanted() {
  const char* wish = std::getenv("TANDEM_CUDA_GRAPHS");
  return wish == nullptr || std::string_view(wish) != "off";
}

}  // namespace

void CudaBackend::grow(DeviceMemory& memory, std::size_t bytes) {
  if (memory.bytes() >= bytes) return;
  queue_.flush();  // launches that use the old memory may be waiting
  memory = DeviceMemory(std::max(bytes, 2 * memory.bytes()));
}

void CudaBackend::write(std::byte* to, std::span<const std::byte> from) {
  quantised_ = {};
  queue_.flush();
  copy_to_device(to, from.data(), from.size(), stream_.get());
  stream_.synchronize();
  staging_.drained();
}

void CudaBackend::read(std::span<std::byte> to, const std::byte* from) {
  queue_.flush();
  copy_to_host(to.data(), from, to.size(), stream_.get());
  arrive(to.size());
}

void CudaBackend::arrive(std::size_t bytes) {
  stream_.synchronize();
  staging_.drained();
  bytes_to_host_ += bytes;
}

void CudaBackend::require_room(std::size_t bytes, std::string_view what) {
  const DeviceBytes memory = device_bytes();
  if (bytes > memory.free) {
    fail(ErrorKind::device, "{} backend: {} needs {} bytes of device memory, {} of {} are free", kName, what, bytes,
         memory.free, memory.total);
  }
}

std::span<const float> CudaBackend::download(Rows x) {
  const std::size_t row_bytes = x.cols * sizeof(float), bytes = row_bytes * x.rows;
  if (downloaded_.bytes() < bytes) downloaded_ = PinnedMemory(bytes);
  queue_.flush();
  if (bytes > 0) {
    copy_rows_to_host(downloaded_.data(), row_bytes, x.data, x.stride * sizeof(float), row_bytes, x.rows,
                      stream_.get());
  }
  arrive(bytes);
  return {downloaded_.as<const float>(), static_cast<std::size_t>(x.rows) * x.cols};
}

bool CudaBackend::run_picker(Rows logits, const Picking& picking) {
  if (logits.rows == 0 || logits.rows > kMaxPassRows || !Picker::can(picking)) return false;
  const auto [inputs, count] =
      put_together([&] { return std::pair(picker_.put(picking, staging_, queue_), count_of(logits.rows)); });
  const Rows rows = fit(logits);
  picker_.queue({rows.data, rows.rows, rows.cols, rows.stride, nullptr, count}, picking, inputs, queue_);
  queue_.flush();
  return true;
}

std::span<const TokenId> CudaBackend::pick(Rows logits, const Picking& picking) {
  if (!run_picker(logits, picking)) return {};
  const std::span<const TokenId> ids = picker_.copy_ids(logits.rows);
  arrive(ids.size_bytes());
  return ids;
}

std::span<const Candidate> CudaBackend::best(Rows logits, const Picking& picking) {
  if (!run_picker(logits, picking)) return {};
  arrive(picker_.copy_candidates(logits.rows, picking.candidates));
  return picker_.candidates();
}

std::unique_ptr<Backend> make_cuda_backend(ThreadPool& pool) {
  std::string why;
  if (!has_device(why)) fail(ErrorKind::device, "{} backend: {}", kName, why);
  return std::make_unique<CudaBackend>(pool, graphs_wanted());
}

bool has_device(std::string& why) { return device_present(why); }

}  // namespace tandem::TANDEM_GPU
