// Every op under every schedule of the emulation: threads that run in another order must not change a bit.
#include <array>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/platform.h"
#include "tests/kernels/attention_fixture.h"
#include "tests/kernels/gpu/device_array.h"

namespace tandem::test {
namespace {

class SchedulesTest : public DeviceTest {
 protected:
  std::unique_ptr<Backend> make() { return std::make_unique<StagedBackend>(TANDEM_GPU::make_cuda_backend(pool_)); }
  ThreadPool pool_{1};
};

TEST_F(SchedulesTest, MatricesNormsAndGatesGiveTheSameBits) {
  constexpr int kCols = 512, kOutputs = 20;
  for (const Format format : {Format::q4_k, Format::q6_k, Format::q5_1, Format::f16}) {
    for (const int rows : {3, 18, 65}) {
      const auto result = in_every_order([&] {
        const auto backend = make();
        const auto weight = load(*backend, format, kOutputs, kCols, random_weight(format, kOutputs, kCols, 1));
        const auto gain = load_vector(*backend, random_values(kCols, 2));
        auto hidden = random_values(static_cast<std::size_t>(rows) * kCols, 3), x = random_values(hidden.size(), 4);
        std::vector<float> out(static_cast<std::size_t>(rows) * kOutputs), gate = out, up = out;
        const Rows xs = rows_of(x, rows, kCols);
        backend->add_rms_norm(xs, rows_of(hidden, rows, kCols), xs, *gain, 1e-6f);
        backend->matmul(std::array{Projection{rows_of(out, rows, kOutputs), weight.get(), nullptr}}, xs);
        backend->gated_matmul({rows_of(gate, rows, kOutputs), weight.get(), nullptr},
                              {rows_of(up, rows, kOutputs), weight.get(), nullptr}, xs, Activation::gelu);
        x.insert(x.end(), out.begin(), out.end());
        x.insert(x.end(), gate.begin(), gate.end());
        return x;
      });
      for (const float value : result) ASSERT_TRUE(std::isfinite(value)) << format_info(format).name;
    }
  }
}

TEST_F(SchedulesTest, CacheAndAttentionGiveTheSameBits) {
  constexpr int kRows = 9, kBase = 300;
  const Shape shape{2, 3, 32, kBase + kRows};
  auto cos = random_values(8 * (kBase + kRows), 5), sin = random_values(cos.size(), 6);
  const RopeTable table{cos.data(), sin.data(), 16, RopeStyle::halves};
  const auto masks = random_tree(kRows, 4);
  for (const KvType type : kAllKvTypes) {
    const auto result = in_every_order([&] {
      const auto backend = make();
      Cache cache(*backend, shape, type);
      auto old = random_values(static_cast<std::size_t>(kBase) * shape.kv_cols(), 1);
      const Rows places = rows_of(old, kBase, shape.kv_cols());
      backend->store_kv(cache.layer, 0, places, places);
      auto queries = random_values(kRows * shape.cols(), 2), keys = random_values(kRows * shape.kv_cols(), 3),
           values = random_values(keys.size(), 4);
      std::vector<Position> positions(kRows);
      for (int i = 0; i < kRows; ++i) positions[i] = kBase + i;
      const Rows q = rows_of(queries, kRows, shape.cols());
      backend->rope_store_kv(q, rows_of(keys, kRows, shape.kv_cols()), rows_of(values, kRows, shape.kv_cols()),
                             positions, table, cache.layer, kBase);
      std::vector<float> out(queries.size());
      backend->attention(rows_of(out, kRows, shape.cols()), q, cache.layer, kBase, {.scale = 0.2f}, {masks});
      backend->move_kv(cache.layer, kBase, std::vector<int>{0, 2, 5});
      backend->soft_cap(q, 5);
      out.insert(out.end(), queries.begin(), queries.end());
      return out;
    });
    for (const float value : result) ASSERT_TRUE(std::isfinite(value)) << name_of(type);
  }
}

}  // namespace
}  // namespace tandem::test
