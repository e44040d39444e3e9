#include "kernels/cpu/cpu_weight.h"

#include "kernels/op_checks.h"
#include "kernels/quant/repack.h"
#include "src/base/error.h"

namespace tandem::cpu {
namespace {

void make_tiles(CpuWeight& weight, const WeightSource& source, Arena& arena, ThreadPool& pool) {
  weight.tile_bytes = tile_bytes(source.format, source.cols);
  weight.tiles = arena.take(weight.tile_bytes * weight.tile_count());
  const SourceMatrix matrix{source.format, source.rows, source.cols, source.data.data()};
  pool.run([&](int thread) {
    const auto [first, last] = pool.share(weight.tile_count(), thread);
    for (int t = first; t < last; ++t) repack_tile(matrix, t, weight.tiles.data + t * weight.tile_bytes);
  });
}

}  // namespace

std::unique_ptr<CpuWeight> load_weight(const WeightSource& source, WeightUse use, Arena& arena, ThreadPool& pool) {
  check_weight("cpu", source);
  const bool vector = use == WeightUse::vector;
  auto weight =
      std::make_unique<CpuWeight>(vector ? Format::f32 : source.format, source.rows, source.cols, source.data.size());
  if (vector) {
    weight->values.resize(static_cast<std::size_t>(source.rows) * source.cols);
    decode_blocks(source.format, source.data, weight->values);
    return weight;
  }
  if (use != WeightUse::matmul) weight->raw = source.data;
  if (use != WeightUse::lookup) make_tiles(*weight, source, arena, pool);
  if (source.file && use != WeightUse::lookup) source.file->release(source.data);
  return weight;
}

const CpuWeight& as_cpu(const Weight& weight) {
  const auto* cpu = dynamic_cast<const CpuWeight*>(&weight);
  if (!cpu) fail(ErrorKind::model, "cpu backend: expected a weight that it loaded, got one of another backend");
  return *cpu;
}

}  // namespace tandem::cpu
