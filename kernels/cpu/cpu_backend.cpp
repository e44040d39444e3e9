#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/matmul.h"
#include "kernels/op_checks.h"
#include "src/base/error.h"

namespace tandem {
namespace {

using cpu::as_cpu;
using cpu::AttentionTask;
using cpu::CpuWeight;
using cpu::KernelTable;

constexpr int kAlone = 16384;  // elements below which waking the pool costs more than it saves

class CpuBackend final : public Backend {
 public:
  CpuBackend(Isa isa, ThreadPool& pool)
      : name_("cpu-" + std::string(name_of(isa))), kernels_(kernels_of(isa)), pool_(pool), matmul_(kernels_, pool) {}

  std::string_view name() const override { return name_; }
  int threads() const override { return pool_.threads(); }
  ThreadPool& pool() override { return pool_; }
  KvType preferred_kv_type() const override { return KvType::f16; }

  std::unique_ptr<Weight> load(const WeightSource& source, WeightUse use) override {
    return cpu::load_weight(source, use, arena_, pool_);
  }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<cpu::Pages>(bytes); }
  std::span<const float> download(Rows x) override;

  void embed(Rows out, const Weight& table, std::span<const TokenId> tokens) override;
  void rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) override;
  void matmul(std::span<const Projection> projections, Rows x) override { matmul_.run(projections, x); }
  void rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) override;
  void store_kv(const KvLayer& layer, int base, Rows keys, Rows values) override;
  void attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                 Mask mask) override;
  void gated(Rows out, Rows gate, Rows up, Activation activation) override;
  void add(Rows y, Rows x) override;
  void scale(Rows x, float factor) override;
  void soft_cap(Rows x, float cap) override;
  void gather_rows(Rows out, Rows x, std::span<const int> rows) override;
  void move_kv(const KvLayer& layer, int base, std::span<const int> path) override;
  void add_rms_norm(Rows out, Rows hidden, Rows x, const Weight& gain, float epsilon) override;
  void gated_matmul(const Projection& gate, const Projection& up, Rows x, Activation activation) override {
    matmul_.run_gated(gate, up, x, gate_of(activation));
  }

 private:
  // work(row) for every row, over the threads when `elements` in all are worth it.
  template <typename Work>
  void for_rows(int rows, std::size_t elements, const Work& work);
  // work(row, first, count) for every row in pieces of columns.
  template <typename Work>
  void for_pieces(int rows, int cols, const Work& work);
  cpu::Matmul::Combine gate_of(Activation activation) const {
    return activation == Activation::gelu ? kernels_.gelu_gate : kernels_.silu_gate;
  }

  const std::string name_;
  const KernelTable& kernels_;
  ThreadPool& pool_;
  cpu::Arena arena_;
  cpu::Matmul matmul_;
  std::vector<float> download_;
  std::unique_ptr<cpu::Pages> attention_scratch_;  // [threads] of attention_scratch_floats
  std::size_t attention_capacity_ = 0;
  alignas(64) std::atomic<int> next_task_{0};
};

template <typename Work>
void CpuBackend::for_rows(int rows, std::size_t elements, const Work& work) {
  if (rows <= 1 || elements < kAlone) {
    for (int i = 0; i < rows; ++i) work(i);
    return;
  }
  pool_.run([&](int thread) {
    const auto [first, last] = pool_.share(rows, thread);
    for (int i = first; i < last; ++i) work(i);
  });
}

template <typename Work>
void CpuBackend::for_pieces(int rows, int cols, const Work& work) {
  if (static_cast<std::size_t>(rows) * cols < kAlone / 4) {
    for (int i = 0; i < rows; ++i) work(i, 0, cols);
    return;
  }
  constexpr int kPiece = 512;
  const int pieces = (cols + kPiece - 1) / kPiece;
  pool_.run([&](int thread) {
    const auto [first, last] = pool_.share(rows * pieces, thread);
    for (int i = first; i < last; ++i) {
      const int start = i % pieces * kPiece;
      work(i / pieces, start, std::min(kPiece, cols - start));
    }
  });
}

const float* gain_values(const Weight& gain, int cols) {
  const std::vector<float>& values = as_cpu(gain).values;
  if (values.size() != static_cast<std::size_t>(cols)) {
    fail(ErrorKind::model, "rms_norm: expected a gain vector of {}, got {}", cols, values.size());
  }
  return values.data();
}

std::span<const float> CpuBackend::download(Rows x) {
  const std::size_t count = static_cast<std::size_t>(x.rows) * x.cols;
  if (x.stride == x.cols || x.rows <= 1) return {x.data, count};
  download_.resize(std::max(download_.size(), count));
  for (int i = 0; i < x.rows; ++i) {
    std::memcpy(download_.data() + static_cast<std::size_t>(i) * x.cols, x.row(i), sizeof(float) * x.cols);
  }
  return {download_.data(), count};
}

void CpuBackend::embed(Rows out, const Weight& table, std::span<const TokenId> tokens) {
  const CpuWeight& w = as_cpu(table);
  check_embed(out, table, tokens);
  if (w.raw.empty()) fail(ErrorKind::model, "embed: expected a weight loaded for lookup, got one for matmul");
  const std::size_t row_bytes = w.raw.size() / w.rows;
  for_rows(out.rows, static_cast<std::size_t>(out.rows) * out.cols, [&](int i) {
    decode_blocks(w.format, w.raw.subspan(tokens[i] * row_bytes, row_bytes),
                  std::span(out.row(i), static_cast<std::size_t>(out.cols)));
  });
}

void CpuBackend::rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) {
  check_same_shape("rms_norm", out, x);
  const float* g = gain_values(gain, x.cols);
  for_rows(x.rows, static_cast<std::size_t>(x.rows) * x.cols,
           [&](int i) { kernels_.rms_norm(out.row(i), x.row(i), g, x.cols, epsilon); });
}

void CpuBackend::rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) {
  check_rope(heads, head_dim, positions, table);
  const int half = table.dims / 2, step = table.style == RopeStyle::halves ? 1 : 2;
  const int partner = table.style == RopeStyle::halves ? half : 1;
  for_rows(heads.rows, static_cast<std::size_t>(heads.rows) * heads.cols, [&](int i) {
    const float* cos = table.cos + static_cast<std::ptrdiff_t>(positions[i]) * half;
    const float* sin = table.sin + static_cast<std::ptrdiff_t>(positions[i]) * half;
    for (float* head = heads.row(i); head < heads.row(i) + heads.cols; head += head_dim) {
      for (int k = 0; k < half; ++k) {
        const float a = head[step * k], b = head[step * k + partner];
        head[step * k] = a * cos[k] - b * sin[k];
        head[step * k + partner] = a * sin[k] + b * cos[k];
      }
    }
  });
}

void CpuBackend::store_kv(const KvLayer& layer, int base, Rows keys, Rows values) {
  check_store_kv(layer, base, keys, values);
  const auto write = [&](std::byte* to, const float* from) {
    if (layer.type == KvType::f16) {
      kernels_.to_half(reinterpret_cast<std::uint8_t*>(to), from, layer.head_dim);
    } else if (layer.type == KvType::q8_0) {
      kernels_.to_q8_0(reinterpret_cast<std::uint8_t*>(to), from, layer.head_dim);
    } else {
      std::memcpy(to, from, sizeof(float) * layer.head_dim);
    }
  };
  for_rows(keys.rows, static_cast<std::size_t>(keys.rows) * keys.cols, [&](int i) {
    for (int h = 0; h < layer.kv_heads; ++h) {
      const std::size_t at = layer.offset(h, base + i);
      write(layer.keys + at, keys.row(i) + static_cast<std::ptrdiff_t>(h) * layer.head_dim);
      write(layer.values + at, values.row(i) + static_cast<std::ptrdiff_t>(h) * layer.head_dim);
    }
  });
}

void CpuBackend::attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                           Mask mask) {
  check_attention(out, queries, layer, base, params, mask);
  const int rows = queries.rows, heads = queries.cols / layer.head_dim;
  if (rows == 0) return;
  const int shared = heads / layer.kv_heads, blocks = (rows + cpu::kAttentionRows - 1) / cpu::kAttentionRows;
  // With fewer tasks than threads the query heads of a key/value head are split as well.
  const int parts = std::clamp(pool_.threads() / (layer.kv_heads * blocks), 1, shared);
  const int tasks = layer.kv_heads * parts * blocks;
  const std::size_t scratch = cpu::attention_scratch_floats(shared, layer.head_dim);
  if (attention_capacity_ < scratch) {
    attention_scratch_ = std::make_unique<cpu::Pages>(scratch * sizeof(float) * pool_.threads());
    attention_capacity_ = scratch;
  }
  next_task_.store(0, std::memory_order_relaxed);
  pool_.run([&](int thread) {
    AttentionTask task{};
    task.query_stride = queries.stride;
    task.out_stride = out.stride;
    task.head_dim = layer.head_dim;
    task.type = layer.type;
    task.slot_bytes = static_cast<std::ptrdiff_t>(layer.slot_bytes());
    task.base = base;
    task.ring = layer.ring ? layer.capacity : 0;
    task.scale = params.scale;
    task.soft_cap = params.soft_cap;
    task.window = params.window;
    task.ancestors = mask.causal() ? nullptr : mask.ancestors.data();
    task.scratch = reinterpret_cast<float*>(attention_scratch_->data()) + attention_capacity_ * thread;
    for (int i; (i = next_task_.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      // The last rows see most keys, so they go first.
      const int block = blocks - 1 - i / (layer.kv_heads * parts), kv_head = i / parts % layer.kv_heads,
                part = i % parts;
      const int first = shared * part / parts, last = shared * (part + 1) / parts;
      const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(kv_head * shared + first) * layer.head_dim;
      task.queries = queries.data + column;
      task.out = out.data + column;
      task.heads = last - first;
      task.first_row = rows * block / blocks;
      task.last_row = rows * (block + 1) / blocks;
      task.keys = reinterpret_cast<const std::uint8_t*>(layer.keys + layer.offset(kv_head, 0));
      task.values = reinterpret_cast<const std::uint8_t*>(layer.values + layer.offset(kv_head, 0));
      kernels_.attention(task);
    }
  });
}

void CpuBackend::gated(Rows out, Rows gate, Rows up, Activation activation) {
  check_same_shape("gated", out, gate);
  check_same_shape("gated", gate, up);
  const cpu::Matmul::Combine combine = gate_of(activation);
  for_pieces(out.rows, out.cols, [&](int i, int first, int count) {
    combine(out.row(i) + first, gate.row(i) + first, up.row(i) + first, count);
  });
}

void CpuBackend::add(Rows y, Rows x) {
  check_same_shape("add", y, x);
  for_rows(y.rows, static_cast<std::size_t>(y.rows) * y.cols, [&](int i) { kernels_.add(y.row(i), x.row(i), y.cols); });
}

void CpuBackend::scale(Rows x, float factor) {
  for_pieces(x.rows, x.cols, [&](int i, int first, int count) { kernels_.scale(x.row(i) + first, factor, count); });
}

void CpuBackend::soft_cap(Rows x, float cap) {
  for_pieces(x.rows, x.cols, [&](int i, int first, int count) { kernels_.soft_cap(x.row(i) + first, cap, count); });
}

// Each row is normed while it is in L1.
void CpuBackend::add_rms_norm(Rows out, Rows hidden, Rows x, const Weight& gain, float epsilon) {
  check_same_shape("add_rms_norm", hidden, x);
  check_same_shape("add_rms_norm", out, hidden);
  const float* g = gain_values(gain, hidden.cols);
  for_rows(hidden.rows, static_cast<std::size_t>(hidden.rows) * hidden.cols, [&](int i) {
    kernels_.add(hidden.row(i), x.row(i), hidden.cols);
    kernels_.rms_norm(out.row(i), hidden.row(i), g, hidden.cols, epsilon);
  });
}

void CpuBackend::gather_rows(Rows out, Rows x, std::span<const int> rows) {
  check_gather_rows(out, x, rows);
  for (int i = 0; i < out.rows; ++i) std::memmove(out.row(i), x.row(rows[i]), sizeof(float) * x.cols);
}

void CpuBackend::move_kv(const KvLayer& layer, int base, std::span<const int> path) {
  for (int h = 0; h < layer.kv_heads; ++h) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      const int to = base + static_cast<int>(i), from = base + path[i];
      if (to == from) continue;
      std::memcpy(layer.keys + layer.offset(h, to), layer.keys + layer.offset(h, from), layer.slot_bytes());
      std::memcpy(layer.values + layer.offset(h, to), layer.values + layer.offset(h, from), layer.slot_bytes());
    }
  }
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(Isa isa, ThreadPool& pool) {
  if (!machine_has(isa)) {
    fail(ErrorKind::usage, "cpu backend: expected an instruction set that this machine has, got {}", name_of(isa));
  }
  return std::make_unique<CpuBackend>(isa, pool);
}

}  // namespace tandem
