// SmolLM2-135M against an independent engine.
#include <gtest/gtest.h>

#include "tests/golden_test/golden_logits.h"

namespace tandem {
namespace {

GoldenModel smollm2(std::string_view backend) {
  return {"smollm2-135m-instruct", "smollm2-135m-instruct-q4_1.gguf", backend};
}

TEST(GoldenSmolLM2, ReferenceIsEqualTokenByToken) { smollm2("reference").expect_equal(1e-3); }

TEST(GoldenSmolLM2, Int8IsAsCloseAsLlamaCpp) { smollm2("cpu").expect_as_close_as_llama(1.1); }

TEST(GoldenSmolLM2, ReferenceContinuesAlike) { smollm2("reference").expect_continuations(0.01, 0.01); }

TEST(GoldenSmolLM2, Int8ContinuesAlikeWhereTheChoiceIsClear) { smollm2("cpu").expect_continuations(0.3, 1); }

}  // namespace
}  // namespace tandem
