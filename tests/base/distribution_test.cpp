#include "src/base/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Distribution make() {
  Distribution p;
  p.add(2, 0.5);
  p.add(5, 0.25);
  p.add(151935, 0.25);
  return p;
}

TEST(Distribution, IsZeroOutsideItsSupport) {
  const Distribution p = make();
  EXPECT_EQ(p[2], 0.5);
  EXPECT_EQ(p[151935], 0.25);
  for (const TokenId token : {0, 3, 151934, 151936}) EXPECT_EQ(p[token], 0.0) << token;
  EXPECT_EQ(Distribution{}[0], 0.0);
}

TEST(Distribution, RemoveConditionsOnTheRest) {
  Distribution p = make();
  p.remove(2);
  EXPECT_THAT(p.tokens, ElementsAre(5, 151935));
  EXPECT_THAT(p.probabilities, ElementsAre(0.5, 0.5));
  p.remove(3);
  EXPECT_THAT(p.probabilities, ElementsAre(0.5, 0.5));
  p.remove(151935);
  EXPECT_THAT(p.probabilities, ElementsAre(1.0));
  p.remove(5);
  EXPECT_THAT(p.tokens, IsEmpty());
  EXPECT_THAT(p.probabilities, IsEmpty());
}

// 1 - 1e-18 rounds to 1: a subtraction from the total would leave 0 or nothing but rounding.
TEST(Distribution, RemoveKeepsTheTailExactBesideNearlyAllTheMass) {
  Distribution p;
  p.add(0, 1.0);
  p.add(1, 3e-18);
  p.add(2, 1e-18);
  p.remove(0);
  EXPECT_DOUBLE_EQ(p[1], 0.75);
  EXPECT_DOUBLE_EQ(p[2], 0.25);
}

TEST(Distribution, ClearKeepsItsMemory) {
  Distribution p = make();
  const std::size_t capacity = p.tokens.capacity();
  p.clear();
  EXPECT_EQ(p.size(), 0u);
  EXPECT_EQ(p.tokens.capacity(), capacity);
}

}  // namespace
}  // namespace tandem
