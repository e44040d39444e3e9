#include "kernels/cuda/prefill.h"

#include <algorithm>

#include "kernels/cuda/pointwise.h"
#include "kernels/quant/tile.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr std::size_t kPanelBytes = std::size_t{32} << 20;  // an H200's L2 holds it until the product has read it

void reserve(DeviceMemory& memory, std::size_t bytes) {
  if (memory.bytes() < bytes) memory = DeviceMemory(bytes);
}

}  // namespace

void Prefill::run(std::span<const Projection> projections, Rows x) {
  for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
    bool narrowed = element == Element::f32;
    for (const Projection& projection : projections) {
      if (panel_element(projection.weight->format) != element) continue;
      if (!narrowed) narrow(x, element);
      narrowed = true;
      multiply(projection, x, element);
    }
  }
}

void Prefill::narrow(Rows x, Element element) {
  reserve(inputs_, static_cast<std::size_t>(x.rows) * x.cols * bytes_of(element));
  reserve(scales_, x.rows * sizeof(float));
  narrow_rows(inputs_.data(), scales_.as<float>(), x, element, stream_.get());
}

void Prefill::multiply(const Projection& projection, Rows x, Element element) {
  const TiledMatrix matrix = matrix_of(*projection.weight).tiled();
  const int tiles = (matrix.rows + kTileOutputs - 1) / kTileOutputs;
  const std::size_t tile_bytes = static_cast<std::size_t>(kTileOutputs) * matrix.cols * bytes_of(element);
  const int panel = std::clamp(static_cast<int>(kPanelBytes / tile_bytes), 1, tiles);
  reserve(panel_, tile_bytes * panel);
  const bool narrowed = element != Element::f32;
  for (int first = 0; first < tiles; first += panel) {
    const int count = std::min(panel, tiles - first),
              outputs = std::min(count * kTileOutputs, matrix.rows - first * kTileOutputs);
    expand_panel(panel_.data(), matrix, first, count, stream_.get());
    GemmCall call{};
    call.out = projection.out.data + first * kTileOutputs;
    call.out_stride = projection.out.stride;
    call.x = narrowed ? static_cast<const void*>(inputs_.data()) : x.data;
    call.x_stride = narrowed ? x.cols : x.stride;
    call.w = panel_.data();
    call.w_stride = matrix.cols;
    call.rows = x.rows;
    call.outputs = outputs;
    call.cols = matrix.cols;
    call.element = element;
    gemm_.run(call);
  }
  const float* bias = vector_of("matmul: bias", projection.bias, matrix.rows);
  const float* scales = element == Element::f16 ? scales_.as<const float>() : nullptr;
  if (bias != nullptr || scales != nullptr) widen_rows(projection.out, scales, bias, stream_.get());
}

}  // namespace tandem::TANDEM_GPU
