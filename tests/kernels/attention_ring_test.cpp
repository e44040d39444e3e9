// Rings of slots: a layer that keeps the last places only gives the bits of one that keeps all.
#include "src/base/error.h"
#include "tests/kernels/attention_fixture.h"

namespace tandem::test {
namespace {

constexpr int kWindow = 50, kRows = 20, kRing = kWindow + kRows - 1;
constexpr Shape kShape{2, 3, 64, 260};

class AttentionRing : public BackendTest {
 protected:
  // Every slot holds NaN until something is stored there.
  static void poison(Backend& backend, const KvLayer& layer) {
    std::vector<float> bad(static_cast<std::size_t>(layer.kv_heads) * layer.head_dim, NAN);
    const Rows row = rows_of(bad, 1, static_cast<int>(bad.size()));
    for (int place = 0; place < layer.capacity; ++place) backend.store_kv(layer, place, row, row);
  }
  // Stores places [first, last) in passes of at most kRows.
  void store(Backend& backend, const KvLayer& layer, int first, int last) {
    const Rows keys = rows_of(keys_, kShape.capacity, kShape.kv_cols()),
               values = rows_of(values_, kShape.capacity, kShape.kv_cols());
    for (int place = first; place < last; place += kRows) {
      const int rows = std::min(kRows, last - place);
      backend.store_kv(layer, place, keys.slice(place, rows), values.slice(place, rows));
    }
  }
  std::vector<float> attend(Backend& backend, const KvLayer& layer, int base, int rows,
                            std::span<const std::uint64_t> ancestors) {
    std::vector<float> out(static_cast<std::size_t>(rows) * kShape.cols(), NAN);
    backend.attention(rows_of(out, rows, kShape.cols()), rows_of(queries_, kRows, kShape.cols()).slice(0, rows), layer,
                      base, {0.125f, kWindow}, {ancestors});
    return out;
  }

  ThreadPool pool_{2};
  std::vector<float> keys_ = random_values(kShape.capacity * kShape.kv_cols(), 1),
                     values_ = random_values(keys_.size(), 2), queries_ = random_values(kRows * kShape.cols(), 3);
};

// The bases put the seam before, inside and behind the window and the pass. Only the window is stored, so that places
// outside it are NaN in the ring, and in a layer of all places as well.
TEST_P(AttentionRing, GivesTheBitsOfALayerOfAllPlacesAndSeesNoneOutsideTheWindow) {
  const auto tested = make(pool_);
  for (const KvType type : kAllKvTypes) {
    for (const int base :
         sizes<int>({0, 30, kWindow - 1, kWindow, kRing - 1, kRing, kRing + 1, 128, 2 * kRing - 9, 230},
                    {30, kRing, 2 * kRing - 9})) {
      for (const int rows : sizes<int>({1, 7, kRows}, {kRows})) {
        for (const bool tree : {false, true}) {
          const auto masks = tree ? random_tree(rows, base + 1) : std::vector<std::uint64_t>{};
          Cache all(*tested, kShape, type), last(*tested, kShape, type), ring(*tested, kShape, type, kRing);
          store(*tested, all.layer, 0, base + rows);
          const auto want = attend(*tested, all.layer, base, rows, masks);
          for (const Cache* cache : {&last, &ring}) {
            poison(*tested, cache->layer);
            store(*tested, cache->layer, std::max(0, base + 1 - kWindow), base + rows);
            const auto got = attend(*tested, cache->layer, base, rows, masks);
            ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0)
                << name_of(type) << ", " << rows << " rows at " << base << ", ring " << cache->layer.ring << ", tree "
                << tree;
          }
        }
      }
    }
  }
}

TEST_P(AttentionRing, HoldsTheLastPlacesAndMovesThemOverTheSeam) {
  const auto tested = make(pool_);
  const std::vector<int> path{0, 3, 4, 9, 19};
  for (const KvType type : kAllKvTypes) {
    for (const int base : {kRing - 12, kRing - 2, kRing, 3 * kRing - 5}) {
      Cache all(*tested, kShape, type), ring(*tested, kShape, type, kRing);
      for (const Cache* cache : {&all, &ring}) {
        store(*tested, cache->layer, 0, base + kRows);
        tested->move_kv(cache->layer, base, path);
      }
      for (int place = base + kRows - kRing; place < base + kRows; ++place) {
        for (int head = 0; head < kShape.kv_heads; ++head) {
          const std::size_t in_all = all.layer.offset(head, place), in_ring = ring.layer.offset(head, place);
          ASSERT_EQ(std::memcmp(all.layer.keys + in_all, ring.layer.keys + in_ring, all.layer.slot_bytes()), 0)
              << name_of(type) << ", place " << place << " of a pass at " << base;
          ASSERT_EQ(std::memcmp(all.layer.values + in_all, ring.layer.values + in_ring, all.layer.slot_bytes()), 0);
        }
      }
    }
  }
}

TEST_P(AttentionRing, RefusesAPassThatWouldOverwriteItsOwnWindow) {
  const auto tested = make(pool_);
  Cache fits(*tested, kShape, KvType::f16, kRing), small(*tested, kShape, KvType::f16, kRing - 1);
  EXPECT_NO_THROW(attend(*tested, fits.layer, 100, kRows, {}));
  EXPECT_THROW(attend(*tested, small.layer, 100, kRows, {}), Error);
  std::vector<float> out(kShape.cols()), queries(kShape.cols());
  EXPECT_THROW(tested->attention(rows_of(out, 1, kShape.cols()), rows_of(queries, 1, kShape.cols()), fits.layer, 100,
                                 {.scale = 1}, {}),
               Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionRing, testing::ValuesIn(all_backends()), backend_test_name);

}  // namespace
}  // namespace tandem::test
