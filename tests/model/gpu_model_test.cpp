// Whole tiny models on the CUDA kernels, in their emulation and where there is one on a device: the same ids as the
// reference, and rows that do not depend on their company.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

#include "src/base/error.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

struct Case {
  std::string name, architecture;
  Format format;
  KvType kv;
  double noise;  // largest difference of a logit from the reference's, over the spread of the row
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// Inputs of products with codes are rounded to int8, so such logits differ by about 2^-8 of the row's spread for each
// product in a row; floats of both agree to a few roundings, except for the f16 cache.
const Case kCases[] = {{"LlamaF32", "llama", Format::f32, KvType::f32, 1e-4},
                       {"Qwen2Q8_0", "qwen2", Format::q8_0, KvType::f16, 0.1},
                       {"LlamaQ4_K", "llama", Format::q4_k, KvType::f16, 0.1},
                       {"Gemma3Q6_K", "gemma3", Format::q6_k, KvType::q8_0, 0.1},
                       {"Gemma2F32", "gemma2", Format::f32, KvType::f16, 1e-2}};

TinyOptions options_of(const Case& c) {
  const bool blocks = c.format == Format::q4_k || c.format == Format::q6_k;
  TinyOptions options = blocks ? wide_options(c.format) : TinyOptions{};
  options.architecture = c.architecture;
  options.format = c.format;
  return options;
}

class GpuModel : public testing::TestWithParam<std::tuple<std::string, Case>> {
 protected:
  void SetUp() override {
    try {
      tiny_ = std::make_unique<TinyModel>(options_of(setting()), std::get<0>(GetParam()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      GTEST_SKIP() << error.what();
    }
  }
  const Case& setting() const { return std::get<1>(GetParam()); }
  KvCache cache(const TinyModel& tiny) const { return tiny.model.make_cache(96, setting().kv); }

  std::unique_ptr<TinyModel> tiny_;
};

double spread(std::span<const float> row) {
  const auto [low, high] = std::ranges::minmax(row);
  return static_cast<double>(high) - low;
}

// Greedy: where the reference's two best logits are nearer than both sides' noise, either may win, and the ids may
// part.
TEST_P(GpuModel, GeneratesTheIdsOfTheReference) {
  TinyModel reference(options_of(setting()), "reference");
  KvCache want_cache = cache(reference), got_cache = cache(*tiny_);
  const std::vector<TokenId> prompt{7, 40, 3, 99, 12, 64, 3, 8, 71};
  std::vector<float> want = feed(reference.model, want_cache, prompt), got = feed(tiny_->model, got_cache, prompt);
  int compared = 0;
  for (int step = 0; step < 12; ++step) {
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::fabs(double{got[i]} - want[i]));
    ASSERT_LE(worst, setting().noise * spread(want)) << "step " << step;
    const auto best = std::ranges::max_element(want);
    const TokenId id = static_cast<TokenId>(best - want.begin());
    std::vector<float> others = want;
    others[static_cast<std::size_t>(id)] = -INFINITY;
    if (*best - std::ranges::max(others) > 2 * worst) {
      ASSERT_EQ(std::ranges::max_element(got) - got.begin(), id) << "step " << step;
      ++compared;
    }
    want = feed(reference.model, want_cache, std::vector<TokenId>{id});
    got = feed(tiny_->model, got_cache, std::vector<TokenId>{id});
  }
  EXPECT_GE(compared, 3);  // else the margins are too small to say anything
}

TEST_P(GpuModel, NodesOfATreeHaveTheBitsOfTheirPathsRunTokenByToken) {
  const std::vector<TokenId> prompt{7, 40, 3, 99, 12, 64, 3, 8, 71, 20, 33, 5, 6, 80, 90, 17, 28, 39, 50};
  KvCache tree_cache = cache(*tiny_), path_cache = cache(*tiny_);
  feed(tiny_->model, tree_cache, prompt);
  feed(tiny_->model, path_cache, prompt);
  std::mt19937_64 random(3);
  const TokenTree tree = random_tree(random, 5, 19);  // more than one tile of rows
  const Logits logits = feed(tiny_->model, tree_cache, tree);
  std::vector<std::vector<float>> rows;
  rows.reserve(static_cast<std::size_t>(tree.size()));
  for (int node = 0; node < tree.size(); ++node) rows.emplace_back(logits.row(node).begin(), logits.row(node).end());
  const std::vector<int> path = path_to(tree, tree.size() - 1);
  for (const int node : path) {
    const std::vector<float> alone = feed(tiny_->model, path_cache, std::vector<TokenId>{tree.token(node)});
    ASSERT_EQ(std::memcmp(alone.data(), rows[static_cast<std::size_t>(node)].data(), alone.size() * sizeof(float)), 0)
        << "node " << node;
  }
  // Kept, the path is the cache that running it would have left.
  tree_cache.keep_path(static_cast<int>(prompt.size()), path);
  for (int layer = 0; layer < tiny_->model.spec().layers; ++layer) {
    EXPECT_EQ(tree_cache.snapshot(layer), path_cache.snapshot(layer)) << "layer " << layer;
  }
}

TEST_P(GpuModel, PassesOfATileOfRowsReplayOneGraph) {
  const std::vector<TokenId> prompt{7, 40, 3, 99, 12, 64, 3, 8, 71};
  const std::vector<TokenId> chain{20, 33, 5, 6, 80, 90, 17, 28, 39, 50, 2, 9, 61, 44, 13, 70};
  KvCache held = cache(*tiny_);
  feed(tiny_->model, held, prompt);
  const int base = held.size();
  const auto pass = [&](int rows) {
    TokenTree tree(chain[0]);
    for (int i = 1; i < rows; ++i)
      tree.add(i - 1, chain[static_cast<std::size_t>(i)], ChildKind::deterministic, DraftSource::other);
    const Logits logits = feed(tiny_->model, held, tree);
    std::vector<float> values;
    for (int i = 0; i < rows; ++i) values.insert(values.end(), logits.row(i).begin(), logits.row(i).end());
    held.keep_path(base, {});
    return values;
  };
  const std::vector<float> whole = pass(16);
  const DeviceCounts before = tiny_->backend->counts();
  const std::vector<int> passes{1, 2, 16, 1, 7};
  for (const int rows : passes) {
    const std::vector<float> part = pass(rows);
    ASSERT_EQ(std::memcmp(part.data(), whole.data(), part.size() * sizeof(float)), 0) << rows << " rows";
  }
  const DeviceCounts after = tiny_->backend->counts();
  EXPECT_EQ(after.graphs - before.graphs, 1u);
  EXPECT_EQ(after.steps - before.steps, passes.size());
  EXPECT_GE(after.replays - before.replays, passes.size() - 1);  // the first may be the first without a pause
}

TEST_P(GpuModel, ARestoredCacheIsTheSaved) {
  const std::vector<TokenId> prompt{7, 40, 3, 99, 12, 64, 3, 8, 71, 20};
  KvCache first = cache(*tiny_), second = cache(*tiny_);
  feed(tiny_->model, first, prompt);
  std::vector<std::byte> images;
  for (int layer = 0; layer < tiny_->model.spec().layers; ++layer) {
    const auto image = first.image(layer);
    images.insert(images.end(), image.begin(), image.end());
  }
  second.restore(first.size(), first.lost(), images);
  const std::vector<TokenId> next{44};
  EXPECT_EQ(feed(tiny_->model, first, next), feed(tiny_->model, second, next));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuModel);
INSTANTIATE_TEST_SUITE_P(Backends, GpuModel,
                         testing::Combine(testing::ValuesIn(gpu_backends()), testing::ValuesIn(kCases)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tandem::test
