#include "draft/ngram.h"

#include <gtest/gtest.h>

#include <random>

#include "src/base/error.h"

namespace tandem {
namespace {

Context context_of(const std::vector<TokenId>& tokens) {
  Context context;
  context.push(tokens);
  return context;
}

std::vector<TokenId> drafted(const TokenTree& tree) {
  std::vector<TokenId> tokens;
  for (int node = 1; node < tree.size(); ++node) tokens.push_back(tree.token(node));
  return tokens;
}

FixedLength fixed(int length, int room = kMaxTreeNodes, double min_probability = 0) {
  FixedLength policy(length, kMaxTreeNodes, min_probability);
  policy.begin_step({room, kMaxTreeNodes});
  return policy;
}

std::vector<TokenId> propose(NgramDrafter& drafter, const std::vector<TokenId>& tokens, int length) {
  Context context = context_of(tokens);
  FixedLength policy = fixed(length);
  return drafted(drafter.propose(context, policy));
}

TEST(Ngram, ContinuesAsTheTextDidBefore) {
  NgramDrafter drafter(2, 64, 0);
  EXPECT_EQ(propose(drafter, {1, 2, 3, 4, 5, 9, 1, 2, 3}, 3), (std::vector<TokenId>{4, 5, 9}));
}

TEST(Ngram, ContinuesAPeriodBeyondTheEnd) {
  NgramDrafter drafter(2, 64, 0);
  EXPECT_EQ(propose(drafter, {7, 1, 2, 3, 1, 2, 3, 1}, 8), (std::vector<TokenId>{2, 3, 1, 2, 3, 1, 2, 3}));
  drafter.reset();
  EXPECT_EQ(propose(drafter, {4, 4, 4}, 5), (std::vector<TokenId>{4, 4, 4, 4, 4}));
}

TEST(Ngram, DraftsNothingFromAShorterMatchThanAsked) {
  NgramDrafter drafter(3, 64, 0);
  EXPECT_TRUE(propose(drafter, {1, 2, 5, 1, 2}, 4).empty());
  EXPECT_TRUE(propose(drafter, {1, 2, 5, 1}, 4).empty());
  EXPECT_FALSE(propose(drafter, {1, 2, 3, 5, 1, 2, 3}, 4).empty());
  EXPECT_TRUE(propose(drafter, {1}, 4).empty());
}

TEST(Ngram, ProposesAChainOfDeterministicChildren) {
  NgramDrafter drafter(1, 64, 0);
  Context context = context_of({1, 2, 3, 1, 2});
  FixedLength policy = fixed(5);
  const TokenTree& tree = drafter.propose(context, policy);
  ASSERT_EQ(tree.size(), 6);
  EXPECT_EQ(tree.token(0), 2);
  for (int node = 1; node < tree.size(); ++node) {
    EXPECT_EQ(tree.parent(node), node - 1);
    EXPECT_EQ(tree.kind(node), ChildKind::deterministic);
    EXPECT_EQ(tree.source(node), DraftSource::ngram);
    EXPECT_GT(tree.confidence(node), 0);
    EXPECT_LT(tree.confidence(node), 1);
  }
  EXPECT_EQ(context.size(), 5);
}

TEST(Ngram, StaysWithinLengthRoomAndNodes) {
  std::vector<TokenId> tokens(200, 1);
  for (int length : {0, 1, 5, 63}) {
    for (int room : {0, 1, 3, 100}) {
      for (int nodes : {1, 2, 8, kMaxTreeNodes}) {
        NgramDrafter drafter(2, 64, 200);
        Context context = context_of(tokens);
        FixedLength policy(length, kMaxTreeNodes, 0);
        policy.begin_step({room, nodes});
        EXPECT_EQ(drafter.propose(context, policy).size(), 1 + std::min({length, room, nodes - 1}));
      }
    }
  }
}

// Confidence (l + 1) / (l + 2) after a match of l: a threshold of 0.8 needs at least 3 matched tokens.
TEST(Ngram, ConfidenceGrowsWithTheMatchUpToItsLimit) {
  const std::vector<TokenId> two{1, 2, 9, 8, 1, 2}, three{1, 2, 3, 9, 8, 1, 2, 3};
  for (const auto& [tokens, expected] : {std::pair{two, 1}, {three, 3}}) {
    NgramDrafter drafter(1, 64, 0);
    Context context = context_of(tokens);
    FixedLength policy = fixed(2, kMaxTreeNodes, 0.8);
    EXPECT_EQ(drafter.propose(context, policy).size(), expected);
  }
  NgramDrafter capped(1, 2, 0);
  Context context = context_of(three);
  FixedLength policy = fixed(2, kMaxTreeNodes, 0.8);
  EXPECT_EQ(capped.propose(context, policy).size(), 1);
}

// Whatever was pushed, cut or replaced between proposals, a drafter proposes what a new one would from the same length
// of match, and never a token that the context does not hold.
TEST(Ngram, NothingOfACutOrAnotherPromptStays) {
  std::mt19937_64 random(3);
  NgramDrafter drafter(1, 64, 0);
  std::vector<TokenId> tokens{0};
  for (int step = 0; step < 300; ++step) {
    const int choice = static_cast<int>(random() % 10);
    if (choice == 0) tokens.resize(1 + random() % tokens.size());
    if (choice == 1) tokens = {static_cast<TokenId>(100 + step)};
    if (choice == 2) drafter.reset();
    for (int i = static_cast<int>(random() % 6); i >= 0; --i) {
      tokens.push_back(tokens.front() + static_cast<TokenId>(random() % 3));
    }
    const std::vector<TokenId> proposal = propose(drafter, tokens, 4);
    EXPECT_EQ(drafter.automaton().size(), static_cast<int>(tokens.size()));
    NgramDrafter fresh(1, 64, 0);
    propose(fresh, tokens, 4);
    EXPECT_EQ(drafter.automaton().match().length, fresh.automaton().match().length);
    EXPECT_EQ(proposal.empty(), fresh.automaton().match().length == 0);
    for (const TokenId token : proposal) EXPECT_NE(std::find(tokens.begin(), tokens.end(), token), tokens.end());
  }
}

std::shared_ptr<const Corpus> corpus_of(const std::vector<std::vector<TokenId>>& documents) {
  std::vector<TokenId> tokens{Corpus::kBorder};
  for (const auto& document : documents) {
    tokens.insert(tokens.end(), document.begin(), document.end());
    tokens.push_back(Corpus::kBorder);
  }
  return std::make_shared<const Corpus>(std::move(tokens));
}

TEST(NgramCorpus, TheLongerMatchIsContinuedAndOfTwoAsLongTheTexts) {
  const auto corpus = corpus_of({{6, 1, 2, 3, 40, 41, 42}});
  const auto source_of = [&](const std::vector<TokenId>& tokens, const std::vector<TokenId>& expected) {
    NgramDrafter drafter(2, 64, 0, corpus);
    Context context = context_of(tokens);
    FixedLength policy = fixed(2);
    const TokenTree& tree = drafter.propose(context, policy);
    EXPECT_EQ(drafted(tree), expected);
    return tree.size() > 1 ? tree.source(1) : DraftSource::none;
  };
  EXPECT_EQ(source_of({9, 1, 2, 3}, {40, 41}), DraftSource::corpus);                     // nothing in the text
  EXPECT_EQ(source_of({2, 3, 50, 51, 9, 1, 2, 3}, {40, 41}), DraftSource::corpus);       // 2 against 3
  EXPECT_EQ(source_of({1, 2, 3, 50, 51, 9, 1, 2, 3}, {50, 51}), DraftSource::ngram);     // 3 against 3
  EXPECT_EQ(source_of({9, 1, 2, 3, 50, 51, 9, 1, 2, 3}, {50, 51}), DraftSource::ngram);  // 4 against 3
  EXPECT_EQ(source_of({9, 8, 3}, {}), DraftSource::none);                                // shorter than min_match
}

TEST(NgramCorpus, ALongerMatchOfManyContinuationsGivesWayToTheTexts) {
  NgramDrafter drafter(2, 64, 0, corpus_of({{1, 2, 3, 40}, {1, 2, 3, 41}, {1, 2, 3, 42}}));
  EXPECT_EQ(propose(drafter, {2, 3, 50, 51, 9, 1, 2, 3}, 2), (std::vector<TokenId>{50, 51}));
  EXPECT_EQ(propose(drafter, {3, 50, 51, 9, 1, 2, 3}, 2), (std::vector<TokenId>{40}));  // the text's own is too short
}

TEST(NgramCorpus, DraftsStayWithinADocument) {
  NgramDrafter drafter(1, 64, 0, corpus_of({{1, 2, 3}, {4, 5}}));
  EXPECT_EQ(propose(drafter, {9, 1}, 8), (std::vector<TokenId>{2, 3}));
  EXPECT_TRUE(propose(drafter, {9, 3}, 8).empty());
}

// A likely continuation is worth more than one of many, and what a match may be worth is limited as for the text.
TEST(NgramCorpus, ConfidenceFollowsMatchAndShare) {
  const auto confidence = [](const std::vector<std::vector<TokenId>>& documents, int max_match) {
    NgramDrafter drafter(1, max_match, 0, corpus_of(documents));
    Context context = context_of({1, 2, 3});
    FixedLength policy = fixed(1);
    return drafter.propose(context, policy).confidence(1);
  };
  EXPECT_FLOAT_EQ(confidence({{1, 2, 3, 4}}, 64), 4.0f / 5);
  EXPECT_FLOAT_EQ(confidence({{1, 2, 3, 4}}, 2), 3.0f / 4);
  EXPECT_FLOAT_EQ(confidence({{1, 2, 3, 4}, {1, 2, 3, 5}}, 64), 2.0f / 5);
}

TEST(NgramCorpus, ALongTextAndPathAreLookedUpByTheirEnd) {
  std::vector<TokenId> document, tokens;
  for (TokenId i = 0; i < 300; ++i) document.push_back(i);
  tokens.assign(document.begin(), document.begin() + 200);
  NgramDrafter drafter(1, 64, 0, corpus_of({document}));
  EXPECT_EQ(propose(drafter, tokens, 63), (std::vector<TokenId>(document.begin() + 200, document.begin() + 263)));
  TokenTree tree(tokens.back());
  int node = 0;
  for (TokenId i = 0; i < 3; ++i) node = tree.add(node, 200 + i, ChildKind::deterministic, DraftSource::other);
  FixedLength policy = fixed(8);
  EXPECT_EQ(drafter.extend(tree, node, policy), 8);
  EXPECT_EQ(tree.token(4), 203);
  EXPECT_EQ(tree.source(4), DraftSource::corpus);
}

// Nothing of a prompt reaches the corpus or, through it, the next prompt.
TEST(NgramCorpus, DraftsAfterOtherPromptsAreThoseOfAFreshDrafter) {
  std::mt19937_64 random(5);
  const auto draw = [&](std::size_t most) {
    std::vector<TokenId> tokens(1 + random() % most);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 4);
    return tokens;
  };
  const auto corpus = corpus_of({draw(300), draw(300)});
  NgramDrafter drafter(1, 64, 0, corpus);
  for (int prompt = 0; prompt < 50; ++prompt) {
    std::vector<TokenId> tokens = draw(100);
    NgramDrafter fresh(1, 64, 0, corpus);
    for (int step = 0; step < 10; ++step) {
      ASSERT_EQ(propose(drafter, tokens, 6), propose(fresh, tokens, 6));
      tokens.push_back(static_cast<TokenId>(random() % 4));
    }
  }
}

TEST(Ngram, RefusesMatchLengthsThatCannotBe) {
  EXPECT_THROW(NgramDrafter(0, 4, 0), Error);
  EXPECT_THROW(NgramDrafter(5, 4, 0), Error);
}

}  // namespace
}  // namespace tandem
