// Whole sessions of every architecture: text at temperature 0 is plain decoding's, whatever drafts.
#include <gtest/gtest.h>

#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

class ArchitectureSession : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(ArchitectureSession, GreedyIdsEqualPlainAndTheCacheAPrefill) {
  const auto& [architecture, backend] = GetParam();
  Rig rig(backend, 1, std::nullopt, architecture);
  const std::vector<TokenId> prompt = random_prompt(7, 12);
  const std::vector<TokenId> truth = rig.plain(prompt, 60);
  for (const std::string kind : {"model", "recycle", "hybrid", "oracle", "random-tree"}) {
    SCOPED_TRACE(kind);
    Engine engine = rig.engine(rig.any_drafter(kind, truth));
    ASSERT_EQ(run(engine, prompt, 60), truth);
    EXPECT_GT(engine.metrics().total.proposed, 0);
    rig.expect_true_cache(engine);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ArchitectureSession,
                         testing::Combine(testing::Values("llama", "qwen3", "phi3", "gemma2"),
                                          testing::Values("reference", "cpu")),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace tandem::test
