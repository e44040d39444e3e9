#include "kernels/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <tuple>

#include "kernels/cuda/cuda_weight.h"
#include "kernels/cuda/kv.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/prefill.h"
#include "kernels/cuda/step_inputs.h"
#include "kernels/cuda/with_format.h"
#include "kernels/op_checks.h"
#include "kernels/quant/tile.h"
#include "src/base/error.h"

namespace tandem::TANDEM_GPU {
namespace {

#ifdef TANDEM_SIMT
constexpr std::string_view kName = "cuda-simt";
#else
constexpr std::string_view kName = "cuda";
#endif

constexpr Gate gate_of(Activation activation) { return activation == Activation::gelu ? Gate::gelu : Gate::silu; }

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::size_t bytes, const Stream& stream, StepQueue& queue)
      : queue_(queue), memory_(std::max<std::size_t>(bytes, 1)) {
    fill(memory_.data(), 0, memory_.bytes(), stream.get());
  }
  ~DeviceBuffer() override { queue_.settle(); }  // launches that use it may be waiting
  std::byte* data() override { return memory_.data(); }

 private:
  StepQueue& queue_;
  DeviceMemory memory_;
};

// TANDEM_CUDA_GRAPHS=off launches every kernel by itself: to measure what graphs bring.
bool graphs_wanted() {
  const char* wish = std::getenv("TANDEM_CUDA_GRAPHS");
  return wish == nullptr || std::string_view(wish) != "off";
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(ThreadPool& pool)
      : pool_(pool), queue_(stream_, graphs_wanted()), staging_(stream_), prefill_(stream_) {}

  std::string_view name() const override { return kName; }
  std::optional<Device> device() const override {
    const DeviceInfo info = device_info();
    return Device{info.name, static_cast<double>(info.bytes_per_second)};
  }
  int threads() const override { return pool_.threads(); }
  ThreadPool& pool() override { return pool_; }
  KvType preferred_kv_type() const override { return KvType::f16; }

  std::unique_ptr<Weight> load(const WeightSource& source, WeightUse use) override {
    holds_codes_ |= use != WeightUse::vector && !holds_floats(source.format);
    return load_weight(source, use, pool_, stream_, queue_);
  }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    quantised_ = {};  // the memory may be where those rows were
    return std::make_unique<DeviceBuffer>(bytes, stream_, queue_);
  }
  void write(std::byte* to, std::span<const std::byte> from) override;
  void read(std::span<std::byte> to, const std::byte* from) override;
  void require_room(std::size_t bytes, std::string_view what) override;
  std::span<const float> download(Rows x) override;

  void embed(Rows out, const Weight& table, std::span<const TokenId> tokens) override;
  void rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) override;
  void matmul(std::span<const Projection> projections, Rows x) override;
  void rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) override;
  void store_kv(const KvLayer& layer, int base, Rows keys, Rows values) override;
  void attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                 Mask mask) override;
  void gated(Rows out, Rows gate, Rows up, Activation activation) override;
  void add(Rows y, Rows x) override;
  void scale(Rows x, float factor) override { queue(&TANDEM_GPU::scale, x, factor); }
  void soft_cap(Rows x, float cap) override { queue(&TANDEM_GPU::soft_cap, x, cap); }
  void gather_rows(Rows out, Rows x, std::span<const int> rows) override;
  void move_kv(const KvLayer& layer, int base, std::span<const int> path) override;
  void add_rms_norm(Rows out, Rows hidden, Rows x, const Weight& gain, float epsilon) override;
  void rope_store_kv(Rows queries, Rows keys, Rows values, std::span<const Position> positions, const RopeTable& table,
                     const KvLayer& layer, int base) override;
  void gated_matmul(const Projection& gate, const Projection& up, Rows x, Activation activation) override;

 private:
  // Room for `bytes`; the old content is lost.
  void grow(DeviceMemory& memory, std::size_t bytes);
  // Queues an op that may write memory, so that nothing counts as quantised any more.
  template <typename... Parameters, typename... Arguments>
  void queue(void (*op)(Parameters...), Arguments... arguments) {
    quantised_ = {};
    queue_.add(op, arguments...);
  }
  // Queues a norm, which quantises its result where a product of codes may read it next.
  template <typename Norm>
  void queue_norm(Rows out, const Norm& norm) {
    const bool quantises = holds_codes_ && out.rows <= kMaxPassRows;
    if (quantises) acts_ = acts_for(out);
    norm(quantises ? acts_ : QuantisedRows{});
    if (quantises) quantised_ = out;
  }
  static bool same_rows(Rows a, Rows b) {
    return a.data == b.data && a.rows == b.rows && a.cols == b.cols && a.stride == b.stride;
  }
  // Room for the int8 form of `x`.
  QuantisedRows acts_for(Rows x);
  // Quantises the input when a matrix of codes will read it and the op before has not done so.
  void prepare_inputs(std::span<const Projection> projections, Rows x);
  MatmulCall call_for(const Projection& first, Rows x) const;
  static MatmulPart part_of(const Projection& projection);
  void launch_matmul(const MatmulCall& call);
  // What `puts` returns. Lists may have to flush the queue first, so they are put again until none did: then all of
  // them are known to be read by the launch that follows.
  template <typename Puts>
  auto put_together(const Puts& puts) {
    for (;;) {
      const std::uint64_t epoch = queue_.epoch();
      auto lists = puts();
      if (epoch == queue_.epoch()) return lists;
    }
  }
  const int* device_base(int base) { return base_.put(std::span(&base, 1), staging_, queue_); }

  ThreadPool& pool_;
  Stream stream_;
  StepQueue queue_;
  Staging staging_;
  Prefill prefill_;
  DeviceMemory act_codes_, act_sums_;
  QuantisedRows acts_{};      // views of the two
  Rows quantised_;            // whose int8 form they hold; no data: nobody's
  bool holds_codes_ = false;  // whether any matrix does
  DeviceMemory partial_;      // of attention over several splits
  PinnedMemory downloaded_;
  DeviceList<TokenId> tokens_;
  DeviceList<Position> positions_;
  DeviceList<int> base_, rows_, path_;
  DeviceList<std::uint64_t> ancestors_;
};

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
  stream_.synchronize();
  staging_.drained();
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
  stream_.synchronize();
  staging_.drained();
  return {downloaded_.as<const float>(), static_cast<std::size_t>(x.rows) * x.cols};
}

void CudaBackend::embed(Rows out, const Weight& table, std::span<const TokenId> tokens) {
  check_embed(out, table, tokens);
  if (tokens.empty()) return;
  queue(&TANDEM_GPU::embed, out, matrix_of(table).tiled(), tokens_.put(tokens, staging_, queue_));
}

void CudaBackend::rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) {
  check_same_shape("rms_norm", out, x);
  const float* values = vector_of("rms_norm: gain", &gain, x.cols);
  queue_norm(out, [&](QuantisedRows acts) { queue(&TANDEM_GPU::rms_norm, out, x, values, epsilon, acts); });
}

void CudaBackend::add_rms_norm(Rows out, Rows hidden, Rows x, const Weight& gain, float epsilon) {
  check_same_shape("add_rms_norm", hidden, x);
  check_same_shape("add_rms_norm", out, hidden);
  const float* values = vector_of("add_rms_norm: gain", &gain, x.cols);
  queue_norm(out, [&](QuantisedRows acts) { queue(&TANDEM_GPU::add_rms_norm, out, hidden, x, values, epsilon, acts); });
}

QuantisedRows CudaBackend::acts_for(Rows x) {
  QuantisedRows acts{};
  acts.blocks = act_blocks_of(x.cols);
  acts.row_slots = row_slots_of(x.rows);
  const std::size_t places = static_cast<std::size_t>(acts.blocks) * acts.row_slots;
  grow(act_codes_, places * kSubBlock);
  grow(act_sums_, places * sizeof(ActBlock));
  acts.codes = act_codes_.as<std::int8_t>();
  acts.sums = act_sums_.as<ActBlock>();
  return acts;
}

void CudaBackend::prepare_inputs(std::span<const Projection> projections, Rows x) {
  for (const Projection& projection : projections) check_matmul(projection, x);
  const bool codes =
      std::ranges::any_of(projections, [](const Projection& p) { return !holds_floats(matrix_of(*p.weight).format); });
  if (!codes || x.rows == 0 || x.rows > kMaxPassRows) {
    quantised_ = {};  // the products may overwrite what was quantised
  } else if (!same_rows(quantised_, x)) {
    acts_ = acts_for(x);
    queue(&quantise_rows, acts_, x);
    quantised_ = x;
  }
}

MatmulPart CudaBackend::part_of(const Projection& projection) {
  const CudaWeight& weight = matrix_of(*projection.weight);
  return {weight.memory.as<const std::uint8_t>(), vector_of("matmul: bias", projection.bias, weight.rows),
          projection.out.data, projection.out.stride, weight.rows};
}

MatmulCall CudaBackend::call_for(const Projection& first, Rows x) const {
  const CudaWeight& weight = matrix_of(*first.weight);
  MatmulCall call{};
  call.format = weight.format;
  call.rows = x.rows;
  call.cols = x.cols;
  call.tile_bytes = weight.tile_bytes;
  call.acts = acts_;
  call.x = x.data;
  call.x_stride = x.stride;
  return call;
}

void CudaBackend::launch_matmul(const MatmulCall& call) {
  queue_.add(holds_floats(call.format) ? &matmul_floats : &matmul_codes, call);  // its inputs stay quantised
}

// Matrices of one format go together, up to kMaxParts a launch: small ones would leave most of the device idle.
void CudaBackend::matmul(std::span<const Projection> projections, Rows x) {
  prepare_inputs(projections, x);
  if (x.rows == 0) return;
  if (x.rows > kMaxPassRows) {
    queue_.flush();
    return prefill_.run(projections, x);
  }
  for (std::size_t i = 0; i < projections.size();) {
    MatmulCall call = call_for(projections[i], x);
    while (i < projections.size() && call.part_count < kMaxParts && projections[i].weight->format == call.format) {
      call.parts[call.part_count++] = part_of(projections[i++]);
    }
    launch_matmul(call);
  }
}

void CudaBackend::gated_matmul(const Projection& gate, const Projection& up, Rows x, Activation activation) {
  check_gated_matmul(gate, up);
  if (x.rows > kMaxPassRows || gate.weight->format != up.weight->format) {
    return Backend::gated_matmul(gate, up, x, activation);
  }
  prepare_inputs(std::array{gate, up}, x);
  if (x.rows == 0) return;
  MatmulCall call = call_for(gate, x);
  call.parts[0] = part_of(gate);
  call.parts[1] = part_of(up);
  call.part_count = 2;
  call.gate = gate_of(activation);
  launch_matmul(call);
}

void CudaBackend::rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) {
  check_rope(heads, head_dim, positions, table);
  if (heads.rows == 0) return;
  queue(&TANDEM_GPU::rope, heads, head_dim, positions_.put(positions, staging_, queue_), table);
}

void CudaBackend::store_kv(const KvLayer& layer, int base, Rows keys, Rows values) {
  check_store_kv(layer, base, keys, values);
  queue(&TANDEM_GPU::store_kv, layer, device_base(base), keys, values);
}

void CudaBackend::rope_store_kv(Rows queries, Rows keys, Rows values, std::span<const Position> positions,
                                const RopeTable& table, const KvLayer& layer, int base) {
  check_rope(queries, layer.head_dim, positions, table);
  check_rope(keys, layer.head_dim, positions, table);
  check_store_kv(layer, base, keys, values);
  if (queries.rows == 0) return;
  const auto [at, first] =
      put_together([&] { return std::pair(positions_.put(positions, staging_, queue_), device_base(base)); });
  queue(&TANDEM_GPU::rope_store_kv, queries, keys, values, at, table, layer, first);
}

void CudaBackend::attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                            Mask mask) {
  check_attention(out, queries, layer, base, params, mask);
  if (layer.head_dim % 4 != 0 || layer.head_dim > kMaxHeadDim) {
    fail(ErrorKind::model, "{} backend: attention: expected heads of a multiple of 4 elements up to {}, got {}", kName,
         kMaxHeadDim, layer.head_dim);
  }
  if (queries.rows == 0) return;
  AttentionCall call{};
  call.out = out;
  call.queries = queries;
  call.layer = layer;
  call.params = params;
  // A tree's rows see base + 1 places at least and base + rows at most.
  call.first_split = params.window > 0 ? std::max(0, base + 1 - params.window) / kSplit : 0;
  call.splits = (base + queries.rows - 1) / kSplit - call.first_split + 1;
  if (call.splits > 1 && queries.rows <= kMaxPassRows) {
    grow(partial_, partial_bytes(call.splits, queries.rows, queries.cols / layer.head_dim, layer.head_dim));
    call.partial = partial_.as<float>();
  }
  std::tie(call.base, call.ancestors) = put_together([&] {
    return std::pair(device_base(base), mask.causal() ? nullptr : ancestors_.put(mask.ancestors, staging_, queue_));
  });
  queue(&TANDEM_GPU::attention, call);
}

void CudaBackend::gated(Rows out, Rows gate, Rows up, Activation activation) {
  check_same_shape("gated", out, gate);
  check_same_shape("gated", gate, up);
  queue(&TANDEM_GPU::gated, out, gate, up, gate_of(activation));
}

void CudaBackend::add(Rows y, Rows x) {
  check_same_shape("add", y, x);
  queue(&TANDEM_GPU::add, y, x);
}

void CudaBackend::gather_rows(Rows out, Rows x, std::span<const int> rows) {
  check_gather_rows(out, x, rows);
  if (rows.empty()) return;
  queue(&TANDEM_GPU::gather_rows, out, x, rows_.put(rows, staging_, queue_));
}

void CudaBackend::move_kv(const KvLayer& layer, int base, std::span<const int> path) {
  if (path.empty()) return;
  const auto [first, from] =
      put_together([&] { return std::pair(device_base(base), path_.put(path, staging_, queue_)); });
  queue(&TANDEM_GPU::move_kv, layer, first, from, static_cast<int>(path.size()));
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(ThreadPool& pool) {
  std::string why;
  if (!has_device(why)) fail(ErrorKind::device, "{} backend: {}", kName, why);
  return std::make_unique<CudaBackend>(pool);
}

bool has_device(std::string& why) { return device_present(why); }

}  // namespace tandem::TANDEM_GPU
