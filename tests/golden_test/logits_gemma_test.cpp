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

// The golden values take gelu from a table that rounds input and output to f16, also in F32 runs. That alone moves a
// token by up to 0.006, and amplifies the rounding of F32 sums to 0.0004 on average (with the same table here, relative
// noise of 3e-7 on the products does; without it, 0.000002). So 1e-3 holds on average, and 1e-2 for each token;
// logits, which also move together, have a bound of their own.
TEST_F(GoldenGemma, ReferenceIsEqualTokenByToken) { model("reference").expect_equal(1e-2, 1e-3, 5e-2); }

TEST_F(GoldenGemma, Int8IsAsCloseAsLlamaCpp) { model("cpu").expect_as_close_as_llama(1.1); }

TEST_F(GoldenGemma, ReferenceContinuesAlike) { model("reference").expect_continuations(0.01, 0.01); }

TEST_F(GoldenGemma, Int8ContinuesAlikeWhereTheChoiceIsClear) { model("cpu").expect_continuations(0.3, 1); }

}  // namespace
}  // namespace tandem
