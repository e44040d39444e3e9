// Gemma 3 270M against an independent engine; two of its texts are longer than the sliding window, one more than twice.
#include <gtest/gtest.h>

#include "tests/golden_test/golden_logits.h"
#include "tests/model_folder.h"

namespace tandem {
namespace {

class GoldenGemma : public testing::Test {
 protected:
  void SetUp() override {
    if (small_models_only()) GTEST_SKIP() << "skipped: TANDEM_TEST_MODELS=small leaves Gemma out";
  }
  static GoldenModel model(std::string_view backend) { return {"gemma3-270m", kFile, backend}; }
  static constexpr const char* kFile = "gemma-3-270m-q4_k_m.gguf";
};

TEST_F(GoldenGemma, ReferenceIsEqualTokenByToken) { model("reference").expect_equal(1e-3); }

TEST_F(GoldenGemma, Int8IsAsCloseAsLlamaCpp) { model("cpu").expect_as_close_as_llama(1.1); }

TEST_F(GoldenGemma, ReferenceContinuesAlike) { model("reference").expect_continuations(0.01, 0.01); }

TEST_F(GoldenGemma, Int8ContinuesAlikeWhereTheChoiceIsClear) { model("cpu").expect_continuations(0.3, 1); }

}  // namespace
}  // namespace tandem
