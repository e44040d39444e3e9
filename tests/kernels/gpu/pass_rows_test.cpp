// Passes of as many tiles of rows are one graph, whatever their rows; rows that only fill up a tile leave no trace.
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/platform.h"
#include "tests/kernels/gpu/device_array.h"
#include "tests/kernels/kernel_fixture.h"

namespace tandem::test {
namespace {

constexpr int kWidth = 32, kHeads = 2, kHeadDim = kWidth / kHeads, kVocabulary = 40, kMostRows = 64, kBase = 20,
              kPlaces = 96;
constexpr int kActivations = 6;  // arrays of [kMostRows, kWidth]; the logits, [kMostRows, kVocabulary], lie behind them

// Every op of a decode pass, on a device memory of its own.
class MiniPass {
 public:
  explicit MiniPass(ThreadPool& pool) : backend_(TANDEM_GPU::make_cuda_backend(pool)) {
    for (unsigned i = 0; i < 2; ++i) {
      codes_.push_back(
          load(*backend_, Format::q8_0, kWidth, kWidth, random_weight(Format::q8_0, kWidth, kWidth, 10 + i)));
    }
    floats_ = load(*backend_, Format::f16, kWidth, kWidth, random_weight(Format::f16, kWidth, kWidth, 12));
    table_ = load(*backend_, Format::f32, kVocabulary, kWidth, random_weight(Format::f32, kVocabulary, kWidth, 13),
                  WeightUse::lookup);
    head_ = load(*backend_, Format::q8_0, kVocabulary, kWidth, random_weight(Format::q8_0, kVocabulary, kWidth, 14));
    gain_ = load_vector(*backend_, random_values(kWidth, 15));
    head_gain_ = load_vector(*backend_, random_values(kHeadDim, 16));
    rope_ = backend_->allocate(kPlaces * kHeadDim * sizeof(float));
    write(*rope_, random_values(kPlaces * kHeadDim, 17));
    cache_ = backend_->allocate(2 * kCacheBytes);
    memory_ = backend_->allocate(kFloats * sizeof(float));
    write(*memory_, random_values(static_cast<std::size_t>(kMostRows) * kWidth, 18));
    backend_->store_kv(layer(), 0, array(0, kBase), array(0, kBase));
    forget();
  }

  // All activations and logits that a pass over `rows` rows behind kBase places leaves, and the ids picked. What was
  // there before, in the cache as well, are marks.
  struct Result {
    std::vector<float> memory;
    std::vector<std::byte> cache;
    std::vector<TokenId> ids;
    bool operator==(const Result&) const = default;
  };
  Result run(int rows, unsigned seed) {
    forget();
    std::mt19937 random(seed);
    std::vector<TokenId> tokens(static_cast<std::size_t>(rows));
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % kVocabulary);
    std::vector<Position> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), kBase);
    std::vector<int> wanted;
    for (int i = 0; i < rows; i += 2) wanted.push_back(i);

    const Rows x = array(0, rows), q = array(1, rows), k = array(2, rows), v = array(3, rows), y = array(4, rows);
    const Rows last = array(5, static_cast<int>(wanted.size())), logits = logits_of(last.rows);
    backend_->embed(x, *table_, tokens);
    backend_->rms_norm(q, x, *gain_, 1e-6f);
    backend_->matmul(std::array{Projection{k, codes_[0].get(), gain_.get()}, Projection{v, codes_[1].get(), nullptr}},
                     q);
    const Rows heads{k.data, rows * kHeads, kHeadDim, kHeadDim};
    backend_->rms_norm(heads, heads, *head_gain_, 1e-6f);
    const float* const cos = reinterpret_cast<const float*>(rope_->data());
    const RopeTable table{cos, cos + kPlaces * kHeadDim / 2, kHeadDim, RopeStyle::halves};
    backend_->rope(x, kHeadDim, positions, table);
    backend_->rope_store_kv(q, k, v, positions, table, layer(), kBase);
    backend_->attention(y, q, layer(), kBase, {.scale = 0.2f}, {});
    backend_->scale(x, 0.5f);
    backend_->add(x, y);
    backend_->soft_cap(y, 3);
    backend_->add_rms_norm(q, x, y, *gain_, 1e-6f);
    backend_->gated_matmul({k, codes_[1].get(), nullptr}, {v, codes_[0].get(), nullptr}, q, Activation::silu);
    backend_->gated(k, k, q, Activation::gelu);
    backend_->matmul(std::array{Projection{y, floats_.get(), nullptr}}, k);
    backend_->gather_rows(last, y, wanted);
    backend_->rms_norm(last, last, *gain_, 1e-6f);
    backend_->matmul(std::array{Projection{logits, head_.get(), nullptr}}, last);
    const auto picked = backend_->pick(logits, {});
    Result result{std::vector<float>(kFloats), std::vector<std::byte>(2 * kCacheBytes), {picked.begin(), picked.end()}};
    backend_->read(std::as_writable_bytes(std::span(result.memory)), memory_->data());
    backend_->read(result.cache, cache_->data());
    return result;
  }

  DeviceCounts counts() const { return backend_->counts(); }
  static constexpr float kMark = -77;
  static Rows in(std::vector<float>& memory, int which) {
    return {memory.data() + static_cast<std::ptrdiff_t>(which) * kMostRows * kWidth, kMostRows, kWidth, kWidth};
  }
  // Bytes of the cache that belong to places behind the pass's.
  static std::vector<std::byte> behind(const std::vector<std::byte>& cache, int rows) {
    std::vector<std::byte> bytes;
    for (std::size_t part = 0; part < 2 * kHeads; ++part) {
      const auto first = cache.begin() + static_cast<std::ptrdiff_t>(part * kPlaces * kSlot);
      bytes.insert(bytes.end(), first + (kBase + rows) * static_cast<std::ptrdiff_t>(kSlot), first + kPlaces * kSlot);
    }
    return bytes;
  }

 private:
  static constexpr std::size_t kSlot = kHeadDim * 2, kCacheBytes = kHeads * kPlaces * kSlot;
  static constexpr std::size_t kFloats = kMostRows * (kActivations * kWidth + kVocabulary);

  void write(Buffer& to, const std::vector<float>& values) {
    backend_->write(to.data(), std::as_bytes(std::span(values)));
  }
  // Marks in all activations, and in all places of the cache from kBase on.
  void forget() {
    write(*memory_, std::vector<float>(kFloats, kMark));
    const std::vector<std::byte> marks((kPlaces - kBase) * kSlot, std::byte{0x5a});
    for (std::size_t part = 0; part < 2 * kHeads; ++part) {
      backend_->write(cache_->data() + (part * kPlaces + kBase) * kSlot, marks);
    }
  }
  Rows array(int which, int rows) {
    float* const first = reinterpret_cast<float*>(memory_->data());
    return {first + static_cast<std::ptrdiff_t>(which) * kMostRows * kWidth, rows, kWidth, kWidth};
  }
  Rows logits_of(int rows) { return {array(kActivations, 1).data, rows, kVocabulary, kVocabulary}; }
  KvLayer layer() {
    return {cache_->data(), cache_->data() + kCacheBytes, KvType::f16, kHeads, kPlaces, kHeadDim, false};
  }

  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Weight>> codes_;
  std::unique_ptr<Weight> floats_, table_, head_, gain_, head_gain_;
  std::unique_ptr<Buffer> rope_, cache_, memory_;
};

class PassRows : public DeviceTest {
 protected:
  ThreadPool pool_{1};
};

TEST_F(PassRows, OneGraphServesAllPassesOfATile) {
  MiniPass replayed(pool_);
  replayed.run(kMostRows, 1);  // memory that is taken at the first use
  const DeviceCounts before = replayed.counts();
  std::vector<int> passes(16);
  std::iota(passes.begin(), passes.end(), 1);
  for (const int rows : {17, 32, 20, 3, 33, 48, 40, 64, 49, 16, 1}) passes.push_back(rows);
  for (const int rows : passes) {
    const unsigned seed = static_cast<unsigned>(rows);
    MiniPass fresh(pool_);  // which has recorded nothing
    ASSERT_EQ(replayed.run(rows, seed), fresh.run(rows, seed)) << rows << " rows";
  }
  const DeviceCounts after = replayed.counts();
  EXPECT_EQ(after.graphs - before.graphs, 4u);
  EXPECT_EQ(after.steps - before.steps, passes.size());
  EXPECT_EQ(after.replays - before.replays, passes.size() - 4);  // each kind runs once as it is
}

TEST_F(PassRows, RowsThatFillUpATileAreWrittenNowhere) {
  MiniPass pass(pool_);
  for (const int rows : {1, 5, 16, 5, 5, 17, 18, 33, 34, 17, 1}) {
    MiniPass::Result result = pass.run(rows, 7);
    for (int which = 0; which < 5; ++which) {
      const Rows array = MiniPass::in(result.memory, which);
      for (int row = 0; row < kMostRows; ++row) {
        for (int i = 0; i < kWidth; ++i) {
          ASSERT_EQ(array.row(row)[i] == MiniPass::kMark, row >= rows) << "array " << which << " row " << row;
        }
      }
    }
    const Rows last = MiniPass::in(result.memory, 5);
    for (int row = 0; row < kMostRows; ++row) ASSERT_EQ(*last.row(row) == MiniPass::kMark, row >= (rows + 1) / 2);
    for (const std::byte byte : MiniPass::behind(result.cache, rows)) ASSERT_EQ(byte, std::byte{0x5a}) << rows;
    ASSERT_EQ(result.ids.size(), static_cast<std::size_t>((rows + 1) / 2));
  }
}

// Company and filling change no bit of a row.
TEST_F(PassRows, ARowHasTheSameBitsInEveryPass) {
  MiniPass pass(pool_);
  MiniPass::Result most = pass.run(64, 3);
  for (const int rows : {1, 2, 16, 17, 40}) {
    MiniPass::Result part = pass.run(rows, 3);  // the same tokens as far as they go
    for (int which = 0; which < 5; ++which) {
      const Rows want = MiniPass::in(most.memory, which), got = MiniPass::in(part.memory, which);
      for (int row = 0; row < rows; ++row) {
        ASSERT_EQ(std::memcmp(want.row(row), got.row(row), kWidth * sizeof(float)), 0) << which << " " << row;
      }
    }
    EXPECT_TRUE(std::equal(part.ids.begin(), part.ids.end(), most.ids.begin()));
  }
}

}  // namespace
}  // namespace tandem::test
