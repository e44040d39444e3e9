#include "kernels/cuda/cuda_weight.h"

#include <algorithm>
#include <vector>

#include "kernels/op_checks.h"
#include "kernels/quant/repack.h"
#include "kernels/quant/tile.h"
#include "src/base/error.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr std::size_t kPanelBytes = std::size_t{16} << 20;  // tiles made on the host between two copies

void load_tiles(CudaWeight& weight, const WeightSource& source, ThreadPool& pool, const Stream& stream) {
  weight.tile_bytes = tile_bytes(source.format, source.cols);
  const int tiles = (source.rows + kTileOutputs - 1) / kTileOutputs;
  weight.memory = DeviceMemory(weight.tile_bytes * tiles);
  const int panel = std::clamp(static_cast<int>(kPanelBytes / weight.tile_bytes), 1, tiles);
  const SourceMatrix matrix{source.format, source.rows, source.cols, source.data.data()};
  std::vector<std::uint8_t> host(weight.tile_bytes * panel);
  for (int start = 0; start < tiles; start += panel) {
    const int count = std::min(panel, tiles - start);
    std::fill(host.begin(), host.end(), std::uint8_t{0});
    pool.run([&](int thread) {
      const auto [first, last] = pool.share(count, thread);
      for (int t = first; t < last; ++t) repack_tile(matrix, start + t, host.data() + t * weight.tile_bytes);
    });
    copy_to_device(weight.memory.data() + start * weight.tile_bytes, host.data(), count * weight.tile_bytes,
                   stream.get());
    stream.synchronize();  // the next panel takes the same memory
  }
}

const CudaWeight& weight_of(const Weight& weight) {
  const auto* own = dynamic_cast<const CudaWeight*>(&weight);
  if (!own) fail(ErrorKind::model, "cuda backend: expected a weight that it loaded, got one of another backend");
  return *own;
}

}  // namespace

std::unique_ptr<CudaWeight> load_weight(const WeightSource& source, WeightUse use, ThreadPool& pool,
                                        const Stream& stream, StepQueue& queue) {
  check_weight("cuda", source);
  const bool vector = use == WeightUse::vector;
  auto weight = std::make_unique<CudaWeight>(vector ? Format::f32 : source.format, source, queue);
  if (vector) {
    std::vector<float> values(static_cast<std::size_t>(source.rows) * source.cols);
    decode_blocks(source.format, source.data, values);
    weight->memory = DeviceMemory(values.size() * sizeof(float));
    copy_to_device(weight->memory.data(), values.data(), values.size() * sizeof(float), stream.get());
    stream.synchronize();
  } else {
    load_tiles(*weight, source, pool, stream);
  }
  if (source.file) source.file->release(source.data);
  return weight;
}

const CudaWeight& matrix_of(const Weight& weight) {
  const CudaWeight& own = weight_of(weight);
  if (own.tile_bytes == 0) fail(ErrorKind::model, "cuda backend: expected a matrix, got a vector of {}", own.cols);
  return own;
}

const float* vector_of(const char* op, const Weight* weight, int size) {
  if (weight == nullptr) return nullptr;
  const CudaWeight& own = weight_of(*weight);
  if (own.tile_bytes != 0 || own.rows * own.cols != size) {
    fail(ErrorKind::model, "{}: expected a vector of {}, got [{}, {}]", op, size, own.rows, own.cols);
  }
  return own.memory.as<const float>();
}

}  // namespace tandem::TANDEM_GPU
