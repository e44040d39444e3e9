// Drafting on the CUDA kernels changes no text: in their emulation and, where there is one, on a device.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/error.h"
#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

class GpuLossless : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    try {
      Rig::shared(GetParam());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      GTEST_SKIP() << error.what();
    }
  }
  Rig& rig() { return Rig::shared(GetParam()); }
};

TEST_P(GpuLossless, DraftedIdsEqualPlainOnesAndLeaveATrueCache) {
  constexpr int kTokens = 10;
  std::vector<TokenId> prompt = random_prompt(3, 5);
  prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 4);  // so that n-grams match
  RigOptions greedy, shared_noise;
  shared_noise.rule = "coupled";
  shared_noise.sampling.temperature = 0.8f;
  for (const RigOptions& options : {greedy, shared_noise}) {
    const std::vector<TokenId> truth = rig().plain(prompt, kTokens, options);
    for (const char* kind : {"model", "ngram", "random-tree", "wrong"}) {
      SCOPED_TRACE(kind + (" with " + options.rule));
      Engine engine = rig().engine(rig().any_drafter(kind, truth, options), options);
      EXPECT_EQ(run(engine, prompt, kTokens), truth);
      rig().expect_true_cache(engine);
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuLossless);
INSTANTIATE_TEST_SUITE_P(Backends, GpuLossless, ::testing::ValuesIn(gpu_backends()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace tandem::test
