// Attention and the cache ops against the reference, and rows against the same rows alone.
#include <algorithm>

#include "kernels/reference/reference_backend.h"
#include "tests/kernels/attention_fixture.h"

namespace tandem::test {
namespace {

class Attention : public BackendTest {
 protected:
  ThreadPool pool_{2};
  std::unique_ptr<Backend> reference_ = make_reference_backend(pool_);
};

std::vector<float> attend(Backend& backend, const Shape& shape, KvType type, int base, int rows, int window,
                          float soft_cap, std::span<const std::uint64_t> ancestors) {
  Cache cache(backend, shape, type);
  auto keys = random_values(static_cast<std::size_t>(base + rows) * shape.kv_cols(), 1),
       values = random_values(keys.size(), 2);
  auto queries = random_values(static_cast<std::size_t>(rows) * shape.cols(), 3);
  backend.store_kv(cache.layer, 0, rows_of(keys, base + rows, shape.kv_cols()),
                   rows_of(values, base + rows, shape.kv_cols()));
  std::vector<float> out(queries.size(), NAN);
  backend.attention(rows_of(out, rows, shape.cols()), rows_of(queries, rows, shape.cols()), cache.layer, base,
                    {1.f / std::sqrt(static_cast<float>(shape.head_dim)), window, soft_cap}, {ancestors});
  return out;
}

TEST_P(Attention, MatchesTheReference) {
  const auto tested = make(pool_);
  const std::vector<Shape> all{{2, 6, 128, 630}, {1, 7, 64, 630}, {1, 1, 8, 630}, {2, 2, 20, 630}, {1, 1, 256, 630}};
  for (const Shape& shape : sizes(all, {{1, 3, 64, 630}, {2, 1, 20, 630}, {1, 2, 160, 630}})) {
    for (const KvType type : kAllKvTypes) {
      if (!stores_heads(type, shape.head_dim)) continue;
      // Those beyond 256 are split by the CUDA kernels only.
      const std::vector<int> bases =
          on_cpu() ? std::vector{0, 63, 64, 200} : sizes<int>({0, 63, 200, 600}, {0, 40, 520});
      for (const int base : bases) {
        for (const int rows : {1, 20}) {
          for (const int window : {0, 50}) {
            for (const float soft_cap : sizes<float>({0.f, 3.f}, {window > 0 ? 3.f : 0.f})) {
              for (const bool tree : {false, true}) {
                const auto masks = tree ? random_tree(rows, base) : std::vector<std::uint64_t>{};
                const auto got = attend(*tested, shape, type, base, rows, window, soft_cap, masks);
                const auto want = attend(*reference_, shape, type, base, rows, window, soft_cap, masks);
                // Scores are sums of head_dim products of size up to 100, so weights are relatively wrong by at most
                // e = 8 sqrt(head_dim) eps 100, and an average of values below 30 by 2 e 30. A cap makes no error
                // larger and adds one of 8 eps soft_cap.
                // Caches of either backend hold equal bits, whatever their type, and both expand them exactly.
                const float bound =
                    2 * (8 * std::sqrt(static_cast<float>(shape.head_dim)) * 100 + 8 * soft_cap) * kEpsilon * 30;
                for (std::size_t i = 0; i < got.size(); ++i) {
                  ASSERT_NEAR(got[i], want[i], bound)
                      << name_of(type) << " head_dim " << shape.head_dim << " base " << base << " rows " << rows
                      << " window " << window << " cap " << soft_cap << " tree " << tree << " at " << i;
                }
              }
            }
          }
        }
      }
    }
  }
}

struct InvarianceCase {
  KvType type;
  int base, window;
};
std::vector<InvarianceCase> cases(const std::vector<int>& bases, const std::vector<int>& windows) {
  std::vector<InvarianceCase> all;
  for (const KvType type : kAllKvTypes) {
    for (const int base : bases) {
      for (const int window : windows) all.push_back({type, base, window});
    }
  }
  return all;
}

TEST_P(Attention, ARowOfAChainEqualsTheRowAlone) {
  const Shape shape{2, 3, 64, 700};
  for (const int threads : on_cpu() ? std::vector{1, 2, 4} : std::vector{1}) {
    ThreadPool pool(threads);
    const auto tested = make(pool);
    for (const auto& [type, base, window] : cases(on_cpu() ? std::vector{0, 130} : std::vector{200}, {0, 40})) {
      const int all = slow() ? 70 : 100;
      Cache cache(*tested, shape, type);
      auto keys = random_values((base + all) * shape.kv_cols(), 1), values = random_values(keys.size(), 2);
      auto queries = random_values(all * shape.cols(), 3);
      tested->store_kv(cache.layer, 0, rows_of(keys, base + all, shape.kv_cols()),
                       rows_of(values, base + all, shape.kv_cols()));
      std::vector<float> alone(queries.size(), NAN);
      for (int i = 0; i < all; ++i) {
        tested->attention(rows_of(alone, all, shape.cols()).slice(i, 1),
                          rows_of(queries, all, shape.cols()).slice(i, 1), cache.layer, base + i, {0.125f, window}, {});
      }
      for (const int rows : sizes<int>({2, 7, 8, 9, 33, 100}, {9, 33, 70})) {
        std::vector<float> together(static_cast<std::size_t>(rows) * shape.cols(), NAN);
        tested->attention(rows_of(together, rows, shape.cols()), rows_of(queries, all, shape.cols()).slice(0, rows),
                          cache.layer, base, {0.125f, window}, {});
        ASSERT_EQ(std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)), 0)
            << name_of(type) << ", " << rows << " rows, base " << base << ", window " << window << ", threads "
            << threads;
      }
    }
  }
}

// Each node of a tree against a causal chain of its own path.
TEST_P(Attention, ANodeOfATreeEqualsTheChainOfItsPath) {
  const Shape shape{2, 3, 64, 300};
  for (const int threads : on_cpu() ? std::vector{1, 4} : std::vector{1}) {
    ThreadPool pool(threads);
    const auto tested = make(pool);
    for (const auto& [type, base, window] : cases(sizes<int>({0, 40, 128}, {245}), {0, 30})) {
      for (const int rows : sizes<int>({5, 64}, {21})) {
        const auto masks = random_tree(rows, rows + base);
        auto keys = random_values((base + rows) * shape.kv_cols(), 1), values = random_values(keys.size(), 2);
        auto queries = random_values(rows * shape.cols(), 3);
        Cache cache(*tested, shape, type);
        tested->store_kv(cache.layer, 0, rows_of(keys, base + rows, shape.kv_cols()),
                         rows_of(values, base + rows, shape.kv_cols()));
        std::vector<float> tree(queries.size(), NAN);
        tested->attention(rows_of(tree, rows, shape.cols()), rows_of(queries, rows, shape.cols()), cache.layer, base,
                          {0.125f, window}, {masks});
        for (int i = 0; i < rows; ++i) {
          Cache chain(*tested, shape, type);
          const Rows k = rows_of(keys, base + rows, shape.kv_cols()), v = rows_of(values, base + rows, shape.kv_cols());
          tested->store_kv(chain.layer, 0, k.slice(0, base), v.slice(0, base));
          std::vector<int> path;
          for (int j = 0; j <= i; ++j) {
            if (masks[i] >> j & 1) path.push_back(j);
          }
          for (std::size_t p = 0; p < path.size(); ++p) {
            const int slot = base + static_cast<int>(p);
            tested->store_kv(chain.layer, slot, k.slice(base + path[p], 1), v.slice(base + path[p], 1));
          }
          std::vector<float> want(shape.cols(), NAN);
          tested->attention(rows_of(want, 1, shape.cols()), rows_of(queries, rows, shape.cols()).slice(i, 1),
                            chain.layer, base + static_cast<int>(path.size()) - 1, {0.125f, window}, {});
          ASSERT_EQ(std::memcmp(want.data(), tree.data() + i * shape.cols(), want.size() * sizeof(float)), 0)
              << name_of(type) << ", node " << i << " of " << rows << ", base " << base;
        }
      }
    }
  }
}

TEST_P(Attention, StoredAndMovedSlotsAreTheReferences) {
  const auto tested = make(pool_);

  for (const KvType type : kAllKvTypes) {
    const Shape shape{2, 1, type == KvType::q8_0 ? 64 : 24, 40};
    auto keys = random_values(20 * shape.kv_cols(), 1), values = random_values(keys.size(), 2);
    keys[3] = 1e6f;   // infinite in f16
    keys[4] = 1e-7f;  // subnormal in f16
    std::fill_n(keys.begin() + 256, 32, 0.f);
    for (int k = 288; k < 320; ++k) keys[k] *= 1e-6f;  // a scale among the subnormals of f16
    std::fill_n(keys.begin() + 320, 32, 1e-30f);       // a scale of 0
    keys[400] = 1e7f;                                  // an infinite scale
    values[40] = NAN;
    values[100] = -INFINITY;
    Cache got(*tested, shape, type), want(*reference_, shape, type);
    const std::vector<int> path{0, 3, 4, 9};
    for (auto [backend, cache] : {std::pair{tested.get(), &got}, std::pair{reference_.get(), &want}}) {
      backend->store_kv(cache->layer, 5, rows_of(keys, 20, shape.kv_cols()), rows_of(values, 20, shape.kv_cols()));
      backend->move_kv(cache->layer, 5, path);
    }
    const std::size_t bytes = static_cast<std::size_t>(shape.kv_heads) * shape.capacity * got.layer.slot_bytes();
    EXPECT_EQ(std::memcmp(got.layer.keys, want.layer.keys, bytes), 0);
    EXPECT_EQ(std::memcmp(got.layer.values, want.layer.values, bytes), 0);
  }
}

TEST_P(Attention, RopeWithStoreGivesTheBitsOfItsParts) {
  const auto tested = make(pool_);
  for (const KvType type : kAllKvTypes) {
    const Shape shape{2, 3, type == KvType::q8_0 ? 64 : 20, 12};
    for (const RopeStyle style : {RopeStyle::adjacent, RopeStyle::halves}) {
      for (const int dims : {12, shape.head_dim}) {
        auto cos = random_values(9 * dims / 2, 4), sin = random_values(9 * dims / 2, 5);
        const RopeTable table{cos.data(), sin.data(), dims, style};
        const std::vector<Position> positions{8, 0, 3, 3, 7};
        std::vector<float> queries[2], keys[2];
        auto values = random_values(5 * shape.kv_cols(), 3);
        Cache caches[] = {{*tested, shape, type}, {*tested, shape, type}};
        for (int i = 0; i < 2; ++i) {
          queries[i] = random_values(5 * shape.cols(), 1);
          keys[i] = random_values(5 * shape.kv_cols(), 2);
          const auto run = [&](auto&& op) {
            op(rows_of(queries[i], 5, shape.cols()), rows_of(keys[i], 5, shape.kv_cols()),
               rows_of(values, 5, shape.kv_cols()), positions, table, caches[i].layer, 4);
          };
          if (i == 0) {
            run([&](auto&&... arguments) { tested->Backend::rope_store_kv(arguments...); });
          } else {
            run([&](auto&&... arguments) { tested->rope_store_kv(arguments...); });
          }
        }
        const std::size_t bytes =
            static_cast<std::size_t>(shape.kv_heads) * shape.capacity * caches[0].layer.slot_bytes();
        EXPECT_EQ(std::memcmp(queries[0].data(), queries[1].data(), queries[0].size() * sizeof(float)), 0);
        EXPECT_EQ(std::memcmp(caches[0].layer.keys, caches[1].layer.keys, bytes), 0) << name_of(type);
        EXPECT_EQ(std::memcmp(caches[0].layer.values, caches[1].layer.values, bytes), 0);
      }
    }
  }
}

// Elements to the nearest multiples of scale = largest / 127, which is rounded to f16 (relatively by 2^-11, or by
// 2^-25).
TEST_P(Attention, Q8SlotsHoldTheNearestMultiplesOfTheirScale) {
  const auto tested = make(pool_);
  const Shape shape{1, 1, 64, 60};
  auto x = random_values(shape.capacity * shape.kv_cols(), 5);
  for (int i = 0; i < shape.capacity; ++i) {
    for (int k = 0; k < 64; ++k) x[i * 64 + k] *= std::pow(10.f, static_cast<float>(i % 12) - 7);
  }
  Cache cache(*tested, shape, KvType::q8_0);
  const Rows rows = rows_of(x, shape.capacity, shape.kv_cols());
  tested->store_kv(cache.layer, 0, rows, rows);
  for (int i = 0; i < shape.capacity; ++i) {
    for (int k = 0; k < 64; k += 32) {
      const std::byte* block = cache.layer.keys + cache.layer.offset(0, i) + k / 32 * 34;
      std::uint16_t half;
      std::memcpy(&half, block, sizeof half);
      const float scale = half_to_float(half);
      float peak = 0;
      for (int j = 0; j < 32; ++j) peak = std::max(peak, std::fabs(rows.row(i)[k + j]));
      const float scale_error = std::max(peak / 127 / 2048, std::ldexp(1.f, -25));
      ASSERT_NEAR(scale, peak / 127, scale_error);
      for (int j = 0; j < 32; ++j) {
        const int code = static_cast<std::int8_t>(block[2 + j]);
        ASSERT_GE(code, -127);
        // Half a step; the largest may lie beyond 127 of a scale that was rounded down.
        const float bound = (scale / 2 + 127 * scale_error) * (1 + 4 * kEpsilon);
        ASSERT_NEAR(static_cast<float>(code) * scale, rows.row(i)[k + j], bound) << "slot " << i << " scale " << scale;
      }
    }
  }
}

TEST_P(Attention, BadKeysAndValuesStayVisible) {
  const auto tested = make(pool_);
  const Shape shape{1, 2, 32, 10};
  for (const KvType type : kAllKvTypes) {
    for (const bool in_keys : {false, true}) {
      Cache cache(*tested, shape, type);
      auto keys = random_values(5 * shape.kv_cols(), 1), values = random_values(5 * shape.kv_cols(), 2),
           queries = random_values(shape.cols(), 3);
      (in_keys ? keys : values)[2 * shape.kv_cols() + 7] = NAN;
      tested->store_kv(cache.layer, 0, rows_of(keys, 5, shape.kv_cols()), rows_of(values, 5, shape.kv_cols()));
      std::vector<float> out(shape.cols());
      tested->attention(rows_of(out, 1, shape.cols()), rows_of(queries, 1, shape.cols()), cache.layer, 4, {1, 0}, {});
      EXPECT_TRUE(std::any_of(out.begin(), out.end(), [](float v) { return std::isnan(v); })) << name_of(type);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Attention, testing::ValuesIn(all_backends()), backend_test_name);

}  // namespace
}  // namespace tandem::test
