// GB/s and GMAC/s of every op on the shapes of the real models, beside what memory gives. See README.md.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/yardstick.h"
#include "kernels/registry.h"
#include "src/base/half.h"

namespace tandem {
namespace {

constexpr std::size_t kWorkingSet = std::size_t{400} << 20;  // weights a case walks over, so that no cache holds them

ThreadPool& pool() {
  static ThreadPool instance(default_threads());
  return instance;
}
Backend& backend() {
  static const std::unique_ptr<Backend> instance = make_backend("cpu", pool());
  return *instance;
}

std::vector<float> random_values(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}
Rows rows_of(std::vector<float>& values, int rows, int cols) { return {values.data(), rows, cols, cols}; }

struct Shape {
  const char* name;
  Format format;
  int outputs, cols;
};

constexpr Shape kShapes[] = {
    {"1.5B/q", Format::q4_k, 1536, 1536},         {"1.5B/gate_up", Format::q4_k, 17920, 1536},
    {"1.5B/down_q4", Format::q4_k, 1536, 8960},   {"1.5B/down_q6", Format::q6_k, 1536, 8960},
    {"1.5B/output", Format::q6_k, 151936, 1536},  {"0.5B/q", Format::q5_0, 896, 896},
    {"0.5B/gate_up", Format::q5_0, 9728, 896},    {"0.5B/down_q4", Format::q4_k, 896, 4864},
    {"0.5B/down_q6", Format::q6_k, 896, 4864},    {"0.5B/output", Format::q8_0, 151936, 896},
    {"SmolLM2/gate_up", Format::q4_1, 3072, 576},
};

// Copies of one matrix that fill the working set; codes are random, block scales small.
std::vector<std::unique_ptr<Weight>> load_copies(const Shape& shape) {
  const FormatInfo& info = format_info(shape.format);
  std::vector<std::byte> data(static_cast<std::size_t>(shape.outputs) * shape.cols / info.block_values *
                              info.block_bytes);
  std::mt19937 random(2);
  for (std::size_t i = 0; i + 4 <= data.size(); i += 4) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(data.data() + i, &word, sizeof word);
  }
  const std::uint16_t scale = float_to_half(0.001f);
  for (std::size_t i = 0; i < data.size(); i += info.block_bytes) {
    std::byte* block = data.data() + i;
    std::memcpy(block + (shape.format == Format::q6_k ? 208 : 0), &scale, sizeof scale);
    if (shape.format == Format::q4_k || shape.format == Format::q4_1) std::memcpy(block + 2, &scale, sizeof scale);
  }
  std::vector<std::unique_ptr<Weight>> copies;
  for (std::size_t bytes = 0; bytes < kWorkingSet; bytes += data.size()) {
    copies.push_back(backend().load({shape.format, shape.outputs, shape.cols, data, nullptr}, WeightUse::matmul));
  }
  return copies;
}

void rate(benchmark::State& state, const std::string& name, double per_iteration) {
  state.counters[name] = benchmark::Counter(per_iteration / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

// What the machine gives at best, measured once.
struct Peaks {
  double read_bytes_per_second = measure_read_bandwidth(pool());
  double macs_per_second = measure_multiply_peak(pool());
};
const Peaks& peaks() {
  static const Peaks instance;
  return instance;
}

// The counter as a rate, and as a percentage of the machine's peak.
void rate_of_peak(benchmark::State& state, const std::string& name, double per_iteration, double peak_per_second) {
  rate(state, name, per_iteration);
  state.counters[name + "_%"] =
      benchmark::Counter(100 * per_iteration / peak_per_second, benchmark::Counter::kIsIterationInvariantRate);
}

// One matrix with m rows; GB/s counts the bytes of the file.
void matmul(benchmark::State& state, const Shape& shape) {
  const int m = static_cast<int>(state.range(0));
  static std::map<std::string, std::vector<std::unique_ptr<Weight>>> loaded;
  auto& copies = loaded[shape.name];
  if (copies.empty()) {
    loaded.clear();  // one working set at a time
    loaded[shape.name] = load_copies(shape);
  }
  auto& weights = loaded[shape.name];
  auto x = random_values(static_cast<std::size_t>(m) * shape.cols);
  std::vector<float> out(static_cast<std::size_t>(m) * shape.outputs);
  std::size_t next = 0;
  for (auto _ : state) {
    const Projection p{rows_of(out, m, shape.outputs), weights[next++ % weights.size()].get(), nullptr};
    backend().matmul({&p, 1}, rows_of(x, m, shape.cols));
  }
  rate_of_peak(state, "GB", static_cast<double>(weights[0]->bytes), peaks().read_bytes_per_second);
  rate_of_peak(state, "GMAC", static_cast<double>(m) * shape.outputs * shape.cols, peaks().macs_per_second);
}

// Attention of m rows over `cached` keys, one layer after the other.
void attention(benchmark::State& state, int heads, int kv_heads, int head_dim) {
  const int m = static_cast<int>(state.range(0)), cached = static_cast<int>(state.range(1)), capacity = cached + m;
  const std::size_t bytes = static_cast<std::size_t>(kv_heads) * capacity * head_dim * 2;
  const int layers = 24;
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 2 * layers; ++i) buffers.push_back(backend().allocate(bytes));
  auto x = random_values(static_cast<std::size_t>(m) * heads * head_dim),
       kv = random_values(static_cast<std::size_t>(capacity) * kv_heads * head_dim);
  std::vector<float> out(x.size());
  std::vector<KvLayer> kvs;
  for (int i = 0; i < layers; ++i) {
    kvs.push_back({buffers[2 * i]->data(), buffers[2 * i + 1]->data(), KvType::f16, kv_heads, capacity, head_dim});
    backend().store_kv(kvs.back(), 0, rows_of(kv, capacity, kv_heads * head_dim),
                       rows_of(kv, capacity, kv_heads * head_dim));
  }
  std::size_t next = 0;
  for (auto _ : state) {
    backend().attention(rows_of(out, m, heads * head_dim), rows_of(x, m, heads * head_dim), kvs[next++ % layers],
                        cached, {1.f / std::sqrt(static_cast<float>(head_dim)), 0}, {});
  }
  rate(state, "GB", 2.0 * static_cast<double>(bytes));
  rate(state, "GMAC", 2.0 * m * heads * head_dim * (cached + (m + 1) / 2.0));
}

// The ops between the matmuls on rows of `cols`; GB/s counts what is read and written.
void row_op(benchmark::State& state, const std::string& op, int cols) {
  const int m = static_cast<int>(state.range(0));
  auto x = random_values(static_cast<std::size_t>(m) * cols), y = x, out = x;
  const auto gain_values = random_values(cols);
  std::vector<std::byte> gain_bytes(gain_values.size() * sizeof(float));
  std::memcpy(gain_bytes.data(), gain_values.data(), gain_bytes.size());
  const auto gain = backend().load({Format::f32, 1, cols, gain_bytes, nullptr}, WeightUse::vector);
  for (auto _ : state) {
    if (op == "rms_norm") backend().rms_norm(rows_of(out, m, cols), rows_of(x, m, cols), *gain, 1e-6f);
    if (op == "gated")
      backend().gated(rows_of(out, m, cols), rows_of(x, m, cols), rows_of(y, m, cols), Activation::silu);
    if (op == "add") backend().add(rows_of(out, m, cols), rows_of(x, m, cols));
  }
  rate(state, "GB", static_cast<double>(m) * cols * sizeof(float) * (op == "rms_norm" ? 2 : 3));
}

void register_all() {
  for (const Shape& shape : kShapes) {
    auto* b = benchmark::RegisterBenchmark(
        ("matmul/" + std::string(shape.name) + "/" + std::string(format_info(shape.format).name)).c_str(),
        [&shape](benchmark::State& state) { matmul(state, shape); });
    for (const int m : {1, 2, 4, 6, 8, 16, 64, 512}) b->Arg(m);
    b->Unit(benchmark::kMicrosecond)->UseRealTime();
  }
  const auto attend = [](const char* name, int heads, int kv_heads, int head_dim) {
    auto* b = benchmark::RegisterBenchmark(
        name, [=](benchmark::State& state) { attention(state, heads, kv_heads, head_dim); });
    for (const int cached : {512, 4096}) {
      for (const int m : {1, 4, 8}) b->Args({m, cached});
    }
    b->Args({512, 0})->Unit(benchmark::kMicrosecond)->UseRealTime();
  };
  attend("attention/1.5B", 12, 2, 128);
  attend("attention/0.5B", 14, 2, 64);
  for (const auto& [op, cols] : {std::pair<const char*, int>{"rms_norm", 1536}, {"gated", 8960}, {"add", 1536}}) {
    auto* b =
        benchmark::RegisterBenchmark(op, [op = op, cols = cols](benchmark::State& state) { row_op(state, op, cols); });
    for (const int m : {1, 8, 512}) b->Arg(m);
    b->Unit(benchmark::kMicrosecond)->UseRealTime();
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("backend", std::string(tandem::backend().name()));
  benchmark::AddCustomContext("threads", std::to_string(tandem::backend().threads()));
  benchmark::AddCustomContext("read_GB_per_second", std::to_string(tandem::peaks().read_bytes_per_second / 1e9));
  benchmark::AddCustomContext("multiply_peak_GMAC_per_second", std::to_string(tandem::peaks().macs_per_second / 1e9));
  tandem::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
