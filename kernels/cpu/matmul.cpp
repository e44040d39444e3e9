#include "kernels/cpu/matmul.h"

#include <algorithm>

#include "kernels/op_checks.h"
#include "src/base/error.h"

namespace tandem::cpu {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{448} << 10;  // most activations a pass over the weights

void check(const Projection& projection, Rows x) {
  check_matmul(projection, x);
  const Weight& w = *projection.weight;
  if (!as_cpu(w).tiles.data) fail(ErrorKind::model, "matmul: expected a weight loaded for matmul, got one for lookup");
  if (projection.bias && as_cpu(*projection.bias).values.size() != static_cast<std::size_t>(w.rows)) {
    fail(ErrorKind::model, "matmul: expected a bias vector of {}, got {}", w.rows,
         as_cpu(*projection.bias).values.size());
  }
}

void reserve(std::unique_ptr<Pages>& pages, std::size_t& capacity, std::size_t bytes) {
  if (bytes <= capacity) return;
  pages.reset();
  pages = std::make_unique<Pages>(bytes);
  capacity = bytes;
}

}  // namespace

Matmul::Chunks Matmul::chunks_of(int rows, int cols) {
  const int groups = (cols + kGroup - 1) / kGroup;
  const int fit = static_cast<int>(kChunkBytes / (static_cast<std::size_t>(groups) * kActBytes)) / 8 * 8;
  return {groups, std::min(rows, std::clamp(fit, 8, kMaxTileRows))};
}

std::uint8_t* Matmul::place(std::uint8_t* acts, Chunks chunks, int total_rows, int row, int group) const {
  const int start = row / chunks.rows * chunks.rows, in_chunk = std::min(chunks.rows, total_rows - start);
  const std::size_t before = static_cast<std::size_t>(start) * chunks.groups;
  return acts + (before + static_cast<std::size_t>(group) * in_chunk + (row - start)) * kActBytes;
}

// This thread's share of the quantised input; returns when all of it is there.
void Matmul::quantise(Rows x, Chunks chunks, int thread) {
  if (!uses_group_ && !uses_block_) return;
  const auto [first, last] = pool_.share(x.rows * chunks.groups, thread);
  std::uint8_t* group_acts = uses_group_ ? reinterpret_cast<std::uint8_t*>(group_acts_->data()) : nullptr;
  std::uint8_t* block_acts = uses_block_ ? reinterpret_cast<std::uint8_t*>(block_acts_->data()) : nullptr;
  for (int i = first; i < last; ++i) {
    const int row = i / chunks.groups, group = i % chunks.groups, count = std::min(kGroup, x.cols - kGroup * group);
    const float* from = x.row(row) + static_cast<std::ptrdiff_t>(kGroup) * group;
    if (group_acts) {
      kernels_.quantise_group(from, count, reinterpret_cast<GroupActs*>(place(group_acts, chunks, x.rows, row, group)));
    }
    if (block_acts) {
      kernels_.quantise_blocks(from, count,
                               reinterpret_cast<BlockActs*>(place(block_acts, chunks, x.rows, row, group)));
    }
  }
  pool_.barrier();
}

void Matmul::tiles(const Projection& projection, Rows x, Chunks chunks, int row, int first, int last) {
  const CpuWeight& w = as_cpu(*projection.weight);
  const Family family = family_of(w.format);
  const float* bias = projection.bias ? as_cpu(*projection.bias).values.data() : nullptr;
  const auto kernel = family == Family::group   ? kernels_.matmul_group
                      : family == Family::block ? kernels_.matmul_block
                                                : kernels_.matmul_real;
  Pages* acts = family == Family::group ? group_acts_.get() : family == Family::block ? block_acts_.get() : nullptr;
  TileCall call{};
  call.format = w.format;
  call.cols = w.cols;
  call.acts = acts ? place(reinterpret_cast<std::uint8_t*>(acts->data()), chunks, x.rows, row, 0) : nullptr;
  call.act_rows = call.rows = std::min(chunks.rows, x.rows - row);
  call.x = x.row(row);
  call.x_stride = x.stride;
  call.out_stride = projection.out.stride;
  call.read_ahead = read_ahead_;
  for (int t = first; t < last; ++t) {
    const int column = kTileOutputs * t;
    call.tile = w.tiles.data + t * w.tile_bytes;
    call.out = projection.out.row(row) + column;
    call.outputs = std::min(kTileOutputs, w.rows - column);
    call.bias = bias ? bias + column : nullptr;
    kernel(call);
  }
}

// This thread's share, by bytes, of all tiles of the call in a row.
void Matmul::multiply(std::span<const Projection> projections, Rows x, Chunks chunks, int thread) {
  const std::size_t threads = pool_.threads(), low = total_bytes_ * thread / threads,
                    high = total_bytes_ * (thread + 1) / threads;
  std::size_t start = 0;
  for (const Projection& p : projections) {
    const CpuWeight& w = as_cpu(*p.weight);
    const auto cut = [&](std::size_t at) {
      if (at <= start) return 0;
      return static_cast<int>(std::min<std::size_t>(w.tile_count(), (at - start + w.tile_bytes / 2) / w.tile_bytes));
    };
    const int first = cut(low), last = cut(high);
    for (int row = 0; row < x.rows; row += chunks.rows) tiles(p, x, chunks, row, first, last);
    start += w.tile_bytes * w.tile_count();
  }
}

void Matmul::multiply_gated(const Projection& gate, const Projection& up, Rows x, Chunks chunks, int thread,
                            Combine combine) {
  const auto [first, last] = pool_.share(as_cpu(*gate.weight).tile_count(), thread);
  const int column = kTileOutputs * first, count = std::min(kTileOutputs * last, gate.out.cols) - column;
  if (count <= 0) return;
  for (int row = 0; row < x.rows; row += chunks.rows) {
    tiles(gate, x, chunks, row, first, last);
    tiles(up, x, chunks, row, first, last);
    for (int i = row; i < std::min(row + chunks.rows, x.rows); ++i) {
      float* out = gate.out.row(i) + column;
      combine(out, out, up.out.row(i) + column, count);
    }
  }
}

Matmul::Chunks Matmul::prepare(std::span<const Projection> projections, Rows x) {
  uses_group_ = uses_block_ = false;
  total_bytes_ = 0;
  for (const Projection& p : projections) {
    check(p, x);
    const CpuWeight& w = as_cpu(*p.weight);
    uses_group_ |= family_of(w.format) == Family::group;
    uses_block_ |= family_of(w.format) == Family::block;
    total_bytes_ += w.tile_bytes * w.tile_count();
  }
  const Chunks chunks = chunks_of(x.rows, x.cols);
  const std::size_t bytes = static_cast<std::size_t>(x.rows) * chunks.groups * kActBytes;
  if (uses_group_) reserve(group_acts_, group_capacity_, bytes);
  if (uses_block_) reserve(block_acts_, block_capacity_, bytes);
  return chunks;
}

void Matmul::run(std::span<const Projection> projections, Rows x) {
  if (x.rows <= 0 || projections.empty()) return;
  const Chunks chunks = prepare(projections, x);
  pool_.run([&](int thread) {
    quantise(x, chunks, thread);
    multiply(projections, x, chunks, thread);
  });
}

void Matmul::run_gated(const Projection& gate, const Projection& up, Rows x, Combine combine) {
  if (x.rows <= 0) return;
  check_gated_matmul(gate, up);
  const Projection both[] = {gate, up};
  const Chunks chunks = prepare(both, x);
  pool_.run([&](int thread) {
    quantise(x, chunks, thread);
    multiply_gated(gate, up, x, chunks, thread, combine);
  });
}

}  // namespace tandem::cpu
