#include "src/sample/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tandem {
namespace {

using ::testing::ElementsAre;

TEST(Context, PopUndoesPush) {
  Context context;
  context.push(std::vector<TokenId>{5, 6});
  context.push(7);
  context.push(std::vector<TokenId>{8, 9});
  context.pop(2);
  EXPECT_THAT(context.tokens(), ElementsAre(5, 6, 7));
  EXPECT_EQ(context.size(), 3);
  context.pop(0);
  EXPECT_EQ(context.size(), 3);
}

TEST(Context, PositionCountsDroppedTokensButNotCutOnes) {
  Context context;
  context.set_dropped(100);
  context.push(std::vector<TokenId>{1, 2, 3});
  EXPECT_EQ(context.position(), 103u);
  context.pop(1);
  EXPECT_EQ(context.position(), 102u);
  EXPECT_EQ(context.size(), 2);
}

}  // namespace
}  // namespace tandem
