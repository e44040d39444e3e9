// Caches that hold prefixes give for every row the sequence that a true cache would have seen.
#include "src/model/prefix_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;

class PrefixTreeTest : public ::testing::Test {
 protected:
  std::vector<TokenId> spelt(Prefix prefix) const {
    std::vector<TokenId> tokens;
    for (; prefix != 0; prefix = tree_.parent(prefix)) tokens.insert(tokens.begin(), tree_.token(prefix));
    return tokens;
  }
  // Runs rows and returns the sequences of those of `wanted`.
  std::vector<std::vector<TokenId>> run(const std::vector<TokenId>& tokens, const std::vector<std::uint64_t>& ancestors,
                                        const std::vector<int>& wanted) {
    const std::vector<Position> positions(tokens.size());
    std::vector<std::vector<TokenId>> sequences;
    tree_.run({tokens, positions, ancestors, wanted}, cache_,
              [&](Prefix prefix) { sequences.push_back(spelt(prefix)); });
    return sequences;
  }

  PrefixTree tree_{16};
  KvCache cache_ = tree_.make_cache(16);
};

TEST_F(PrefixTreeTest, CausalRowsFollowOneAnother) {
  EXPECT_THAT(run({5, 6, 7}, {}, {0, 2}), ElementsAre(ElementsAre(5), ElementsAre(5, 6, 7)));
  EXPECT_THAT(run({8}, {}, {0}), ElementsAre(ElementsAre(5, 6, 7, 8)));
  ASSERT_EQ(cache_.truncate(2), 2);
  EXPECT_THAT(run({9}, {}, {0}), ElementsAre(ElementsAre(5, 6, 9)));
}

//   1 ─ 2 ─ 4
//     └ 3 ─ 5
TEST_F(PrefixTreeTest, RowsOfATreeSeeTheirOwnPathAndKeepIt) {
  run({7}, {}, {});
  EXPECT_THAT(run({1, 2, 3, 4, 5}, {0b1, 0b11, 0b101, 0b1011, 0b10101}, {0, 1, 2, 3, 4}),
              ElementsAre(ElementsAre(7, 1), ElementsAre(7, 1, 2), ElementsAre(7, 1, 3), ElementsAre(7, 1, 2, 4),
                          ElementsAre(7, 1, 3, 5)));
  cache_.keep_path(1, std::vector<int>{0, 2, 4});
  EXPECT_EQ(cache_.size(), 4);
  EXPECT_THAT(run({6}, {}, {0}), ElementsAre(ElementsAre(7, 1, 3, 5, 6)));
}

TEST_F(PrefixTreeTest, OneSequenceHasOneNumber) {
  const Prefix a = tree_.extend(tree_.extend(0, 1), 2);
  const int size = tree_.size();
  EXPECT_EQ(tree_.extend(tree_.extend(0, 1), 2), a);
  EXPECT_EQ(tree_.size(), size);
  EXPECT_EQ(tree_.extend(0, 2), size);
}

}  // namespace
}  // namespace tandem
