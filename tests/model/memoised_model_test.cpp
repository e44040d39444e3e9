#include "src/model/memoised_model.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

TinyOptions q8() {
  TinyOptions options;
  options.format = Format::q8_0;
  return options;
}

class Memoised : public ::testing::Test {
 protected:
  static constexpr std::size_t kPlenty = std::size_t{1} << 20;

  std::vector<float> after(std::span<const TokenId> tokens) {
    KvCache cache = model_.model.make_cache(96, KvType::f16);
    return feed(model_.model, cache, tokens);
  }
  void expect_row(const Logits& logits, int row, std::span<const TokenId> path) {
    const std::vector<float> expected = after(path);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), logits.row(row).begin())) << "row " << row;
  }

  TinyModel model_{q8(), "cpu"};
  std::vector<TokenId> prompt_{5, 9, 9, 40, 3, 77};
};

TEST_F(Memoised, RowsOfTreesAreThoseOfTheModelBitForBit) {
  MemoisedModel memo(model_.model, 96, KvType::f16, kPlenty);
  KvCache cache = memo.make_cache(96, KvType::f16);
  std::mt19937_64 random(1);
  std::vector<TokenId> committed = prompt_;
  for (int round = 0; round < 6; ++round) {
    cache.clear();
    if (round < 3)
      feed(memo, cache, std::span(committed).first(committed.size() - 1));
    else
      for (std::size_t i = 0; i + 1 < committed.size(); ++i) feed(memo, cache, std::span(committed).subspan(i, 1));
    const TokenTree tree = random_tree(random, committed.back(), 12);
    const Logits logits = feed(memo, cache, tree);
    for (int node = 0; node < tree.size(); ++node) {
      std::vector<TokenId> path = committed;
      path.pop_back();
      for (const TokenId token : tokens_of(tree, path_to(tree, node))) path.push_back(token);
      expect_row(logits, node, path);
    }
  }
}

TEST_F(Memoised, KeptPathsAndTruncationMoveTheTextAsInATrueCache) {
  MemoisedModel memo(model_.model, 96, KvType::f16, kPlenty);
  KvCache cache = memo.make_cache(96, KvType::f16);
  std::mt19937_64 random(2);
  std::vector<TokenId> held = prompt_;
  feed(memo, cache, held);
  for (int round = 0; round < 8; ++round) {
    const TokenTree tree = random_tree(random, static_cast<TokenId>(random() % 105), 8);
    feed(memo, cache, tree);
    const std::vector<int> path = path_to(tree, static_cast<int>(random() % 8));
    cache.keep_path(static_cast<int>(held.size()), path);
    for (const TokenId token : tokens_of(tree, path)) held.push_back(token);
    if (round % 3 == 2) {
      held.resize(held.size() - 2);
      ASSERT_EQ(cache.truncate(static_cast<int>(held.size())), static_cast<int>(held.size()));
    }
    const TokenId next = static_cast<TokenId>(round);
    held.push_back(next);
    EXPECT_EQ(feed(memo, cache, {&next, 1}), after(held)) << round;
  }
}

TEST_F(Memoised, APrefixIsComputedOnceWhileMemoryLasts) {
  MemoisedModel memo(model_.model, 96, KvType::f16, kPlenty);
  KvCache cache = memo.make_cache(96, KvType::f16);
  for (int repeat = 0; repeat < 3; ++repeat) {
    cache.clear();
    feed(memo, cache, prompt_);
    const auto logits = memo.logits_after(prompt_);
    const std::vector<float> expected = after(prompt_);
    EXPECT_TRUE(std::equal(logits.begin(), logits.end(), expected.begin(), expected.end()));
  }
  EXPECT_EQ(memo.computed(), 1);
}

// Going back further than the rings of sliding windows hold, the true cache is filled anew.
TEST(MemoisedSliding, PrefixesFarApartAnswerAsTheModelDoes) {
  TinyOptions options;
  options.architecture = "gemma3";
  TinyModel tiny(options, "cpu", 1, 32);
  std::mt19937_64 random(4);
  const std::vector<TokenId> text = random_tokens(random, 200);
  MemoisedModel memo(tiny.model, 256, KvType::f16, 0);
  for (const std::size_t length : {150u, 200u, 60u, 199u, 100u, 101u, 1u, 200u}) {
    std::vector<TokenId> prefix(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    for (const TokenId last : {prefix.back(), static_cast<TokenId>((prefix.back() + 1) % 105)}) {
      prefix.back() = last;
      KvCache cache = tiny.model.make_cache(256, KvType::f16);
      ASSERT_TRUE(cache.layer(0).ring);
      const std::vector<float> expected = feed(tiny.model, cache, prefix, 32);
      const auto logits = memo.logits_after(prefix);
      EXPECT_TRUE(std::equal(logits.begin(), logits.end(), expected.begin(), expected.end())) << length;
    }
  }
}

TEST_F(Memoised, WithoutMemoryItComputesAgainAndAnswersTheSame) {
  MemoisedModel memo(model_.model, 96, KvType::f16, 0);
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const std::size_t length : {std::size_t{2}, prompt_.size()}) {
      const std::vector<float> expected = after(std::span(prompt_).first(length));
      const auto logits = memo.logits_after(std::span(prompt_).first(length));
      EXPECT_TRUE(std::equal(logits.begin(), logits.end(), expected.begin(), expected.end()));
    }
  }
  EXPECT_EQ(memo.computed(), 4);
}

}  // namespace
}  // namespace tandem::test
