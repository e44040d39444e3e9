#include "draft/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "src/base/error.h"

namespace tandem {
namespace {

constexpr TokenId kBorder = Corpus::kBorder;
using Documents = std::vector<std::vector<TokenId>>;

std::vector<TokenId> joined(const Documents& documents) {
  std::vector<TokenId> tokens{kBorder};
  for (const auto& document : documents) {
    tokens.insert(tokens.end(), document.begin(), document.end());
    tokens.push_back(kBorder);
  }
  return tokens;
}

Documents random_documents(std::mt19937_64& random, int count, int length, TokenId alphabet) {
  Documents documents(static_cast<std::size_t>(count));
  for (auto& document : documents) {
    document.resize(random() % static_cast<std::uint64_t>(length + 1));
    for (TokenId& token : document) token = static_cast<TokenId>(random() % static_cast<std::uint64_t>(alphabet));
  }
  return documents;
}

// By the definition: the longest end of the text behind which some document goes on, and the tokens that follow it.
struct Followers {
  int length = 0;
  std::map<TokenId, int> counts;
};
Followers followers(const Documents& documents, const std::vector<TokenId>& text) {
  Followers best;
  for (const auto& document : documents) {
    for (std::size_t place = 1; place < document.size(); ++place) {
      int length = 0;
      const auto most = static_cast<int>(std::min({place, text.size(), std::size_t{Corpus::kDeepest}}));
      while (length < most && document[place - 1 - static_cast<std::size_t>(length)] ==
                                  text[text.size() - 1 - static_cast<std::size_t>(length)]) {
        ++length;
      }
      if (length == 0 || length < best.length) continue;
      if (length > best.length) best = {length, {}};
      ++best.counts[document[place]];
    }
  }
  return best;
}

TEST(Corpus, LongestMatchIsThatOfTheDefinition) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    const TokenId alphabet = 1 + round % 4;
    const Documents documents = random_documents(random, 4, 90, alphabet);
    const Corpus corpus(joined(documents));
    for (int query = 0; query < 40; ++query) {
      std::vector<TokenId> text = random_documents(random, 1, 80, alphabet + 1).front();
      if (query % 3 == 0 && !documents[0].empty()) {  // the end of a document's beginning
        text.assign(documents[0].begin(),
                    documents[0].begin() + static_cast<std::ptrdiff_t>(random() % documents[0].size()));
      }
      const Followers expected = followers(documents, text);
      const Corpus::Match match = corpus.longest(text);
      ASSERT_EQ(match.length, expected.length);
      std::map<TokenId, int> counts;
      for (std::size_t i = match.first; i < match.last; ++i) {
        ++counts[corpus.tokens()[static_cast<std::size_t>(corpus.order()[i])]];
      }
      ASSERT_EQ(counts, expected.counts);
    }
  }
}

TEST(Corpus, MatchesEndAtTheirLimitAndAtBorders) {
  std::vector<TokenId> run(200, 7);
  EXPECT_EQ(Corpus(joined({run})).longest(run).length, Corpus::kDeepest);
  const Corpus two(joined({{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(two.longest(std::vector<TokenId>{2, 3, 4}).length, 1);  // 3 4 follow each other in no document
  EXPECT_EQ(two.longest(std::vector<TokenId>{9, 3}).length, 0);     // nothing stands behind 3
  EXPECT_EQ(two.longest(std::vector<TokenId>{4, 5}).length, 2);
  EXPECT_EQ(two.longest({}).length, 0);
  EXPECT_EQ(Corpus(joined({})).longest(run).length, 0);
  EXPECT_EQ(Corpus().longest(run).length, 0);
}

// Steps are counted: a token costs a bounded number of comparisons, whatever the text and however long the match.
TEST(Corpus, ALookupLooksAtNoMorePlacesThanThreeBinarySearches) {
  std::mt19937_64 random(2);
  for (const TokenId alphabet : {1, 2, 50, 40000}) {
    const Documents documents = random_documents(random, 8, 8000, alphabet);
    const Corpus corpus(joined(documents));
    const double searches = 3 * (std::log2(static_cast<double>(corpus.order().size())) + 1);
    for (int query = 0; query < 200; ++query) {
      const auto& document = documents[random() % documents.size()];
      const std::size_t length = random() % (document.size() + 1);
      std::int64_t probes = 0;
      corpus.longest(std::span(document).first(length), &probes);
      EXPECT_LE(static_cast<double>(probes), searches);
    }
  }
}

TEST(Corpus, TakesEightBytesAToken) {
  std::mt19937_64 random(3);
  const std::vector<TokenId> tokens = joined(random_documents(random, 8, 8000, 100));
  EXPECT_LE(Corpus(tokens).bytes(), 8 * tokens.size());
}

TEST(Corpus, IsTheSameFromItsParts) {
  std::mt19937_64 random(4);
  const Documents documents = random_documents(random, 3, 200, 3);
  const Corpus corpus(joined(documents));
  const Corpus again({corpus.tokens().begin(), corpus.tokens().end()}, {corpus.order().begin(), corpus.order().end()},
                     3);
  for (const auto& text : random_documents(random, 50, 30, 3)) {
    const Corpus::Match a = corpus.longest(text), b = again.longest(text);
    EXPECT_EQ(a.length, b.length);
    EXPECT_EQ(a.first, b.first);
    EXPECT_EQ(a.last, b.last);
  }
}

TEST(Corpus, PartsThatNoCorpusHasAreRefused) {
  EXPECT_THROW(Corpus({1, 2, kBorder}), Error);
  EXPECT_THROW(Corpus({kBorder, 1, 2}), Error);
  EXPECT_THROW(Corpus(std::vector<TokenId>{}), Error);
  const std::vector<TokenId> tokens{kBorder, 1, 2, kBorder};
  EXPECT_NO_THROW(Corpus(tokens, {2}, 3));
  EXPECT_THROW(Corpus(tokens, {2}, 2), Error);  // an id beyond the vocabulary
  EXPECT_THROW(Corpus(tokens, {3}, 3), Error);  // a border is no place
  EXPECT_THROW(Corpus(tokens, {0}, 3), Error);
  EXPECT_THROW(Corpus(tokens, {-1}, 3), Error);
  EXPECT_THROW(Corpus(tokens, {4}, 3), Error);
  EXPECT_THROW(Corpus({kBorder, -2, kBorder}, {}, 3), Error);
  EXPECT_THROW(Corpus({kBorder, 1}, {}, 3), Error);
  EXPECT_THROW(Corpus({}, {}, 3), Error);
}

// A file may hold any order of the right places: drafts are worse then, and nothing else.
TEST(Corpus, AnOrderThatIsNoneIsHarmless) {
  std::mt19937_64 random(9);
  const std::vector<TokenId> tokens = joined(random_documents(random, 4, 60, 2));
  std::vector<std::int32_t> order;
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    if (tokens[i] != kBorder) order.push_back(static_cast<std::int32_t>(i));
  }
  for (int round = 0; round < 50; ++round) {
    std::ranges::shuffle(order, random);
    const Corpus corpus(tokens, order, 2);
    CorpusWalk walk(corpus);
    for (const auto& text : random_documents(random, 20, 20, 2)) {
      const Corpus::Match match = corpus.longest(text);
      ASSERT_LE(match.first, match.last);
      ASSERT_LE(match.last, order.size());
      walk.begin(text);
      for (int i = 0; i < 70 && walk.next(); ++i) walk.advance();
    }
  }
}

TEST(CorpusWalk, GoesOnAsMostPlacesDo) {
  const Corpus corpus(joined({{1, 2, 5, 6, 7}, {1, 2, 5, 8}, {1, 2, 4, 9}, {1, 2, 5, 6, 3}}));
  CorpusWalk walk(corpus);
  EXPECT_EQ(walk.begin(std::vector<TokenId>{0, 1, 2}), 2);
  ASSERT_TRUE(walk.next());
  EXPECT_EQ(walk.next()->token, 5);
  EXPECT_EQ(walk.next()->share, 0.75);
  walk.advance();
  ASSERT_TRUE(walk.next());
  EXPECT_EQ(walk.next()->token, 6);
  EXPECT_EQ(walk.next()->share, 2.0 / 3);
  walk.advance();
  ASSERT_TRUE(walk.next());
  EXPECT_EQ(walk.next()->token, 3);  // of two that are as frequent the lower id
  EXPECT_EQ(walk.next()->share, 0.5);
}

TEST(CorpusWalk, EndsWithTheDocuments) {
  const Corpus corpus(joined({{1, 2, 3}, {4, 5}}));
  CorpusWalk walk(corpus);
  EXPECT_FALSE(walk.next());
  EXPECT_EQ(walk.begin(std::vector<TokenId>{1}), 1);
  for (const TokenId token : {2, 3}) {
    ASSERT_TRUE(walk.next());
    EXPECT_EQ(walk.next()->token, token);
    walk.advance();
  }
  EXPECT_FALSE(walk.next());
  walk.advance();
  EXPECT_FALSE(walk.next());
  EXPECT_EQ(walk.begin(std::vector<TokenId>{9}), 0);
  EXPECT_FALSE(walk.next());
}

// One document that ends is no vote against those that go on, and many places are asked in part.
TEST(CorpusWalk, AsksPlacesSpreadOverAllOfThem) {
  Documents documents;
  for (int i = 0; i < 1000; ++i) documents.push_back({1, 2, i % 4 == 0 ? 8 : 9, 5});
  const Corpus corpus(joined(documents));
  CorpusWalk walk(corpus);
  EXPECT_EQ(walk.begin(std::vector<TokenId>{1, 2}), 2);
  ASSERT_TRUE(walk.next());
  EXPECT_EQ(walk.next()->token, 9);
  EXPECT_GT(walk.next()->share, 0.5);
  EXPECT_LT(walk.next()->share, 1);
}

}  // namespace
}  // namespace tandem
