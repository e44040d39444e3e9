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

TEST(MakeVerifier, KnowsRejection) {
  const auto verifier = make_verifier("rejection");
  EXPECT_EQ(verifier->name(), "rejection");
  EXPECT_TRUE(verifier->lossless());
}

TEST(MakeVerifier, RefusesRulesThatHaveNotLanded) {
  for (const std::string rule : {"block", "coupled", "typical"}) {
    EXPECT_THAT(refusal(rule), AllOf(HasSubstr("verify.rule"), HasSubstr(rule), HasSubstr("not available yet"),
                                     HasSubstr("available: rejection")));
  }
}

TEST(MakeVerifier, NamesTheNearestRule) {
  EXPECT_THAT(refusal("rejecton"), AllOf(HasSubstr("rejecton"), HasSubstr("did you mean rejection?")));
  EXPECT_THAT(refusal("zebra-crossing"), AllOf(HasSubstr("available: rejection"), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(refusal(""), HasSubstr("available: rejection"));
}

}  // namespace
}  // namespace tandem
