#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/base/error.h"
#include "verify/verifier.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(std::string_view rule) {
  try {
    make_verifier(rule);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  ADD_FAILURE() << rule << " was accepted";
  return "";
}

TEST(MakeVerifier, KnowsEveryRuleAndWhetherItIsLossless) {
  for (const std::string_view rule : {"rejection", "block", "coupled", "typical"}) {
    const auto verifier = make_verifier(rule);
    EXPECT_EQ(verifier->name(), rule);
    EXPECT_EQ(verifier->lossless(), rule != "typical") << rule;
    EXPECT_EQ(verifier->draft_draw() == DraftDraw::shared_noise, rule == "coupled") << rule;
  }
}

TEST(MakeVerifier, NamesTheNearestRule) {
  EXPECT_THAT(refusal("rejecton"), AllOf(HasSubstr("rejecton"), HasSubstr("did you mean rejection?")));
  EXPECT_THAT(refusal("zebra-crossing"),
              AllOf(HasSubstr("available: rejection, block, coupled, typical"), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(refusal(""), HasSubstr("available: rejection"));
}

}  // namespace
}  // namespace tandem
