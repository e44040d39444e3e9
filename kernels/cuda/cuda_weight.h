// Weights in device memory.
#pragma once
#include "kernels/backend.h"
#include "kernels/cuda/expand.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/step_queue.h"

namespace tandem::TANDEM_GPU {

// Tiles (kernels/quant/tile.h), whatever the weight is for, or F32 values of a vector.
class CudaWeight final : public Weight {
 public:
  CudaWeight(Format format, const WeightSource& source, StepQueue& queue)
      : Weight(format, source.rows, source.cols, source.data.size()), queue_(queue) {}
  ~CudaWeight() override { queue_.settle(); }  // launches that read it may be waiting

  DeviceMemory memory;
  std::size_t tile_bytes = 0;  // 0: a vector

  TiledMatrix tiled() const { return {format, rows, cols, memory.as<const std::uint8_t>(), tile_bytes}; }

 private:
  StepQueue& queue_;
};

// Prepares a weight on all threads of the pool and copies it to the device; the file's pages are released behind it.
// Throws Error(model) when the data does not fit the shape, Error(device) when the memory does not do. `queue` outlives
// the weight.
std::unique_ptr<CudaWeight> load_weight(const WeightSource& source, WeightUse use, ThreadPool& pool,
                                        const Stream& stream, StepQueue& queue);

// A matrix of this backend. Throws Error(model) for another backend's or a vector.
const CudaWeight& matrix_of(const Weight& weight);
// Values [size] of a vector; null for none. Throws Error(model), naming the op, for any other weight or size.
const float* vector_of(const char* op, const Weight* weight, int size);

}  // namespace tandem::TANDEM_GPU
