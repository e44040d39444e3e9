// The Qwen2.5-Coder pair against an independent engine.
#include <gtest/gtest.h>

#include "tests/golden_test/golden_logits.h"
#include "tests/model_folder.h"

namespace tandem {
namespace {

// Parameter: the size in the names of rows and files.
class GoldenQwen : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (small_models_only()) GTEST_SKIP() << "skipped: TANDEM_TEST_MODELS=small leaves the Qwen pair out";
  }
  static GoldenModel model(std::string_view backend) {
    const std::string name = std::string("qwen2.5-coder-") + GetParam();
    return {name, name + "-instruct-q4_k_m.gguf", backend};
  }
};

TEST_P(GoldenQwen, ReferenceIsEqualTokenByToken) { model("reference").expect_equal(1e-3); }

TEST_P(GoldenQwen, Int8IsAsCloseAsLlamaCpp) { model("cpu").expect_as_close_as_llama(1.1); }

TEST_P(GoldenQwen, ReferenceContinuesAlike) { model("reference").expect_continuations(0.01, 0.01); }

TEST_P(GoldenQwen, Int8ContinuesAlikeWhereTheChoiceIsClear) { model("cpu").expect_continuations(0.3, 1); }

INSTANTIATE_TEST_SUITE_P(Pair, GoldenQwen, testing::Values("0.5b", "1.5b"),
                         [](const auto& info) { return std::string(info.param) == "0.5b" ? "HalfB" : "OneAndAHalfB"; });

}  // namespace
}  // namespace tandem
