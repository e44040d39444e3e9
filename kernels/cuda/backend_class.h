// The class behind make_cuda_backend().
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/buffers.h"
#include "kernels/cuda/cuda_weight.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/pass_rows.h"
#include "kernels/cuda/picker.h"
#include "kernels/cuda/prefill.h"
#include "kernels/cuda/step_inputs.h"
#include "kernels/cuda/with_format.h"

namespace tandem::TANDEM_GPU {

#ifdef TANDEM_SIMT
inline constexpr std::string_view kName = "cuda-simt";
#else
inline constexpr std::string_view kName = "cuda";
#endif

// The ops are in cuda_ops.cpp, what moves memory in cuda_backend.cpp.
class CudaBackend final : public Backend {
 public:
  // `graphs`: whether steps are replayed.
  CudaBackend(ThreadPool& pool, bool graphs)
      : pool_(pool), queue_(stream_, graphs), staging_(stream_), prefill_(stream_), picker_(stream_) {}

  std::string_view name() const override { return kName; }
  std::optional<Device> device() const override {
    const DeviceInfo info = device_info();
    return Device{info.name, static_cast<double>(info.bytes_per_second)};
  }
  DeviceCounts counts() const override { return {bytes_to_host_, queue_.epoch(), queue_.replays(), queue_.graphs()}; }
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
  std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override { return std::make_unique<PinnedBuffer>(bytes); }
  void write(std::byte* to, std::span<const std::byte> from) override;
  void read(std::span<std::byte> to, const std::byte* from) override;
  void require_room(std::size_t bytes, std::string_view what) override;
  std::span<const float> download(Rows x) override;
  std::span<const TokenId> pick(Rows logits, const Picking& picking) override;
  std::span<const Candidate> best(Rows logits, const Picking& picking) override;

  void embed(Rows out, const Weight& table, std::span<const TokenId> tokens) override;
  void rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) override;
  void matmul(std::span<const Projection> projections, Rows x) override;
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
  // Queues a norm, which quantises its result where a product of codes may read it next. Rows may be heads.
  template <typename Norm>
  void queue_norm(Rows out, const Norm& norm) {
    const Rows launched = fit(out, true);
    const bool quantises = holds_codes_ && launched.rows <= kMaxPassRows;
    if (quantises) acts_ = acts_for(launched);
    norm(quantises ? acts_ : QuantisedRows{}, count_of(out.rows, true));
    if (quantises) quantised_ = out;
  }
  // Queues an op on rows that reads no list besides their count.
  template <typename... Parameters, typename... Arguments>
  void queue_rows(void (*op)(Parameters...), Rows x, Arguments... arguments) {
    const RowCount count = count_of(x.rows);
    queue(op, fit(x), arguments..., count);
  }
  // Queues what the picker does with these rows and flushes the queue; false when it cannot.
  bool run_picker(Rows logits, const Picking& picking);
  // Waits for the stream, and for `bytes` that were on their way to the host.
  void arrive(std::size_t bytes);
  // Rows as launches have them.
  Rows fit(Rows x, bool parts = false) const {
    x.rows = pass_.launched(x.rows, parts);
    return x;
  }
  RowCount count_of(int rows, bool parts = false) { return pass_.count(rows, staging_, queue_, parts); }
  static bool same_rows(Rows a, Rows b) {
    return a.data == b.data && a.rows == b.rows && a.cols == b.cols && a.stride == b.stride;
  }
  // Room for the int8 form of `x`, rows as launched.
  QuantisedRows acts_for(Rows x);
  // Quantises the input when a matrix of codes will read it and the op before has not done so.
  void prepare_inputs(std::span<const Projection> projections, Rows x);
  MatmulCall call_for(const Projection& first, Rows x) const;
  static MatmulPart part_of(const Projection& projection);
  void launch_matmul(MatmulCall call, int rows);
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
  std::uint64_t bytes_to_host_ = 0;
  PassRows pass_;
  Picker picker_;
  DeviceList<TokenId> tokens_;
  DeviceList<Position> positions_;
  DeviceList<int> base_, rows_;
  DeviceList<int> path_;          // of move_kv(), its length in front
  std::vector<int> listed_path_;  // the same on the host
  DeviceList<std::uint64_t> ancestors_;
};

}  // namespace tandem::TANDEM_GPU
