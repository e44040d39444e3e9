// Synthetic models: blocks that decode to what was asked for, and a model that says its text.
#include "tests/model/synthetic_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "src/base/error.h"
#include "tests/model/synthetic_blocks.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

constexpr Format kFormats[] = {Format::q4_k, Format::q5_0, Format::q6_k, Format::q8_0};

class SyntheticBlocks : public testing::TestWithParam<Format> {
 protected:
  static constexpr int kValues = 256 * 64;
  std::vector<std::uint8_t> blocks() const {
    const FormatInfo& info = format_info(GetParam());
    return std::vector<std::uint8_t>(static_cast<std::size_t>(kValues / info.block_values * info.block_bytes));
  }
  std::vector<float> decoded(std::span<const std::uint8_t> bytes) const {
    std::vector<float> values(kValues);
    decode_blocks(GetParam(), std::as_bytes(bytes), values);
    return values;
  }
};

// Values share the random scales of their group, at least 1,024 of them: three standard errors are under a tenth.
TEST_P(SyntheticBlocks, RandomOnesHaveTheDeviation) {
  std::vector<std::uint8_t> bytes = blocks();
  std::mt19937_64 random(5);
  fill_random_blocks(GetParam(), bytes, 0.25, random);
  double sum = 0, squares = 0;
  for (const float value : decoded(bytes)) {
    sum += value;
    squares += double{value} * value;
  }
  EXPECT_NEAR(std::sqrt(squares / kValues), 0.25, 0.025);
  EXPECT_NEAR(sum / kValues, 0, 0.05);
}

TEST_P(SyntheticBlocks, SignsComeBackWithTheirMagnitude) {
  std::vector<std::uint8_t> bytes = blocks();
  std::mt19937_64 random(6);
  std::vector<std::uint64_t> signs(kValues / 64);
  for (std::uint64_t& word : signs) word = random();
  fill_sign_blocks(GetParam(), bytes, 0.75, signs);
  const std::vector<float> values = decoded(bytes);
  for (int i = 0; i < kValues; ++i) {
    const double want = (signs[static_cast<std::size_t>(i) / 64] >> i % 64 & 1) != 0 ? 0.75 : -0.75;
    ASSERT_NEAR(values[static_cast<std::size_t>(i)], want, 0.75 / 1024) << "value " << i;  // of the scale as f16
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SyntheticBlocks, testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(format_info(info.param).name); });

TEST(SyntheticBlocks, OtherFormatsAreRefused) {
  std::vector<std::uint8_t> bytes(18);
  EXPECT_THROW(fill_sign_blocks(Format::q4_0, bytes, 1, {}), Error);
}

struct Loaded {
  explicit Loaded(std::uint64_t seed = 1) {
    const std::string path = folder.path() + "/synthetic.gguf";
    write_synthetic_model(shape, seed, path);
    file = GgufFile::open(path);
    model = std::make_unique<Transformer>(read_model_spec(*file), *file, *backend, 64, 512);
  }

  const SyntheticShape& shape = synthetic_shape("tiny");
  TempDir folder;
  std::unique_ptr<GgufFile> file;
  ThreadPool pool{1};
  std::unique_ptr<Backend> backend = make_backend("cpu", pool);
  std::unique_ptr<Transformer> model;
};

TokenId likeliest(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

TEST(SyntheticModel, TokensAreFollowedByTheirSuccessorsMostly) {
  Loaded loaded;
  KvCache cache = loaded.model->make_cache(512, KvType::f16);
  TokenId token = 65;
  int followed = 0;
  for (int i = 0; i < 200; ++i) {
    const TokenId next = likeliest(feed(*loaded.model, cache, std::vector<TokenId>{token}));
    followed += next == synthetic_successor(loaded.shape, token);
    token = synthetic_successor(loaded.shape, token);
  }
  EXPECT_GT(followed, 120);
  EXPECT_LT(followed, 200);  // else drafts of another seed would never be wrong
}

TEST(SyntheticModel, ASeedIsOneFileAndAnotherSeedAnother) {
  TempDir folder;
  const auto bytes = [&](std::uint64_t seed) {
    const std::string path = folder.path() + "/model.gguf";
    write_synthetic_model(synthetic_shape("tiny"), seed, path);
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string first = bytes(1);
  EXPECT_TRUE(bytes(1) == first);
  EXPECT_FALSE(bytes(2) == first);
}

TEST(SyntheticModel, AnUnknownShapeIsRefusedByName) {
  try {
    synthetic_shape("7b");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("got 7b"), std::string_view::npos) << error.what();
  }
}

}  // namespace
}  // namespace tandem::test
