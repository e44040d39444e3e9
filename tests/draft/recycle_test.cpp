#include "draft/recycle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tandem {
namespace {

constexpr int kVocabulary = 40;

// Logits whose best tokens are these, in this order.
std::vector<float> row_of(const std::vector<TokenId>& best) {
  std::vector<float> row(kVocabulary, -5.0f);
  for (std::size_t i = 0; i < best.size(); ++i) row[static_cast<std::size_t>(best[i])] = 9.0f - static_cast<float>(i);
  return row;
}

// A sequence, its drafter and the steps between them.
struct Sequence {
  explicit Sequence(std::vector<TokenId> prompt, TokenMask mask = {}) : drafter(std::move(mask)) {
    context.push(prompt);
  }

  const TokenTree& propose(int length = 4, int nodes = kMaxTreeNodes, double min_probability = 0) {
    FixedLength policy(length, nodes, min_probability);
    policy.begin_step({kMaxTreeNodes, kMaxTreeNodes});
    return drafter.propose(context, policy);
  }
  // A plain step: the row of the pending token has `best` and `next` is committed.
  void step(const std::vector<TokenId>& best, TokenId next) {
    propose(0);
    const TokenTree tree(context.tokens().back());
    observe(tree, {0}, {row_of(best)}, next);
  }
  void observe(const TokenTree& tree, const std::vector<int>& path, const std::vector<std::vector<float>>& rows,
               TokenId next) {
    std::vector<float> data;
    for (const std::vector<float>& row : rows) data.insert(data.end(), row.begin(), row.end());
    Verdict verdict;
    verdict.path_length = 0;
    for (const int node : path) verdict.extend(node);
    verdict.next = next;
    for (std::size_t i = 1; i < path.size(); ++i) context.push(tree.token(path[i]));
    context.push(next);
    drafter.observe({tree, verdict, {data, kVocabulary}}, context);
  }

  RecycleDrafter drafter;
  Context context;
};

std::vector<TokenId> list(std::span<const TokenId> tokens) { return {tokens.begin(), tokens.end()}; }

TEST(Recycle, KeepsTheEightBestSuccessorsOfTheLastRowOfAToken) {
  Sequence run({1});
  run.step({7, 3, 9, 4, 2, 8, 6, 5, 10, 11}, 7);
  EXPECT_EQ(list(run.drafter.successors(1)), (std::vector<TokenId>{7, 3, 9, 4, 2, 8, 6, 5}));
  EXPECT_TRUE(run.drafter.successors(7).empty());
  run.step({1}, 1);  // the others are equal: lowest ids first
  EXPECT_EQ(list(run.drafter.successors(7)), (std::vector<TokenId>{1, 0, 2, 3, 4, 5, 6, 7}));
  run.step({30}, 2);
  EXPECT_EQ(list(run.drafter.successors(1)), (std::vector<TokenId>{30, 0, 1, 2, 3, 4, 5, 6}));
}

TEST(Recycle, SuccessorsEqualASortOfTheRow) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Sequence run({1});
    run.propose(0);
    std::vector<float> row(kVocabulary);
    for (float& logit : row) logit = static_cast<float>(random() % 12);
    row[random() % kVocabulary] = std::numeric_limits<float>::quiet_NaN();
    row[random() % kVocabulary] = std::numeric_limits<float>::infinity();
    run.observe(TokenTree(1), {0}, {row}, 2);
    std::vector<TokenId> expected;
    for (TokenId token = 0; token < kVocabulary; ++token) {
      if (!std::isnan(row[static_cast<std::size_t>(token)])) expected.push_back(token);
    }
    std::ranges::stable_sort(expected, [&](TokenId a, TokenId b) { return row[a] > row[b]; });
    expected.resize(RecycleDrafter::kSuccessors);
    EXPECT_EQ(list(run.drafter.successors(1)), expected);
  }
}

TEST(Recycle, MaskedTokensAreNoSuccessors) {
  std::vector<bool> usable(20, true);
  usable[3] = false;
  Sequence run({1}, TokenMask(usable));
  run.step({3, 30, 7, 4}, 7);
  EXPECT_EQ(list(run.drafter.successors(1)), (std::vector<TokenId>{7, 4, 0, 1, 2, 5, 6, 8}));
}

TEST(Recycle, ProposesASmallTreeOfTheLikeliestPaths) {
  Sequence run({1});
  EXPECT_EQ(run.propose().size(), 1);  // nothing is known
  run.step({2, 3, 4}, 2);
  run.step({5, 6, 7}, 1);
  const TokenTree& tree = run.propose();
  ASSERT_EQ(tree.size(), 1 + RecycleDrafter::kMostDrafted);
  // The chances of first and second choice are .45 and .12 at first; both steps above brought no hit.
  EXPECT_EQ(tree.token(1), 2);
  EXPECT_EQ(tree.parent(1), 0);
  EXPECT_EQ(tree.token(2), 5);
  EXPECT_EQ(tree.parent(2), 1);
  EXPECT_EQ(tree.token(3), 3);
  EXPECT_EQ(tree.parent(3), 0);
  EXPECT_EQ(tree.token(4), 4);
  EXPECT_EQ(tree.parent(4), 0);
  for (int node = 1; node < tree.size(); ++node) {
    EXPECT_EQ(tree.kind(node), ChildKind::deterministic);
    EXPECT_EQ(tree.source(node), DraftSource::recycle);
    EXPECT_GT(tree.confidence(node), 0);
    EXPECT_LT(tree.confidence(node), 1);
  }
  EXPECT_EQ(run.context.size(), 3);
}

TEST(Recycle, StaysWithinWhatThePolicyAllows) {
  Sequence run({1});
  run.step({2, 3, 4}, 2);
  run.step({1, 6, 7}, 1);
  EXPECT_EQ(run.propose(0).size(), 1);
  for (const int length : {1, 2, 3}) EXPECT_EQ(run.propose(length).max_depth(), std::min(length, 3));
  EXPECT_EQ(run.propose(1).size(), 5);  // depth is used up, width is not
  for (const int nodes : {1, 2, 3, 4}) EXPECT_EQ(run.propose(4, nodes).size(), nodes);
  const TokenTree& sure = run.propose(4, kMaxTreeNodes, 0.3);  // first choices only
  EXPECT_EQ(sure.size(), 5);
  EXPECT_EQ(sure.max_depth(), 4);
}

TEST(Recycle, ConfidenceIsLearntFromWhatCame) {
  Sequence run({1});
  run.step({2, 3}, 1);
  const double first = run.drafter.confidence(0), second = run.drafter.confidence(1);
  for (int i = 0; i < 30; ++i) run.step({2, 1}, 1);  // always the second choice
  EXPECT_GT(run.drafter.confidence(1), second + 0.4);
  EXPECT_LT(run.drafter.confidence(0), first / 2);
  EXPECT_EQ(run.propose().child(0, 1), 2);  // before anything deeper
  double total = 0;
  for (int rank = 0; rank < RecycleDrafter::kSuccessors; ++rank) total += run.drafter.confidence(rank);
  EXPECT_LE(total, 1);
}

TEST(Recycle, RowsOffTheAcceptedPathAreOnlyForTokensOfWhichNothingIsKnown) {
  Sequence run({1});
  run.step({7}, 1);
  TokenTree tree(1);
  tree.add(0, 2, ChildKind::deterministic, DraftSource::other);
  tree.add(0, 3, ChildKind::deterministic, DraftSource::other);
  tree.add(2, 4, ChildKind::deterministic, DraftSource::other);
  tree.add(3, 1, ChildKind::deterministic, DraftSource::other);
  tree.add(3, 3, ChildKind::deterministic, DraftSource::other);
  run.observe(tree, {0, 2}, {row_of({3}), row_of({11}), row_of({12}), row_of({13}), row_of({14}), row_of({15})}, 12);
  EXPECT_EQ(run.drafter.successors(1)[0], 3);  // of the path, like the next
  EXPECT_EQ(run.drafter.successors(3)[0], 12);
  EXPECT_EQ(run.drafter.successors(2)[0], 11);  // never met
  EXPECT_EQ(run.drafter.successors(4)[0], 13);
}

// What followed a token in the prompt is known before any row is: the latest first, each once.
TEST(Recycle, StartsFromThePromptsOwnSuccessors) {
  Sequence run({1, 5, 1, 6, 1, 5, 2, 1});
  const TokenTree& tree = run.propose();
  EXPECT_EQ(list(run.drafter.successors(1)), (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(list(run.drafter.successors(5)), (std::vector<TokenId>{2, 1}));
  ASSERT_GT(tree.size(), 1);
  EXPECT_EQ(tree.token(1), 5);
  run.step({9, 8}, 9);  // a row says more
  EXPECT_EQ(run.drafter.successors(1)[0], 9);
  EXPECT_EQ(run.drafter.successors(1)[1], 8);
  std::vector<TokenId> many;
  for (TokenId token = 10; token < 20; ++token) many.insert(many.end(), {1, token});
  Sequence full(many);
  full.propose();
  EXPECT_EQ(list(full.drafter.successors(1)), (std::vector<TokenId>{19, 18, 17, 16, 15, 14, 13, 12}));
}

TEST(Recycle, MaskedTokensOfThePromptAreNoSuccessors) {
  std::vector<bool> usable(20, true);
  usable[3] = false;
  Sequence run({1, 7, 1, 3, 1}, TokenMask(usable));
  run.propose();
  EXPECT_EQ(list(run.drafter.successors(1)), (std::vector<TokenId>{7}));
  EXPECT_EQ(list(run.drafter.successors(3)), (std::vector<TokenId>{1}));
}

// A policy learns from siblings given that those before them were wrong, and must know below which node a row hangs.
TEST(Recycle, QuestionsNameParentAndChanceAfterTheEarlierSiblings) {
  struct Recorder final : LengthPolicy {
    void begin_step(const DraftBudget&) override {}
    bool allow_draft_step(const DraftQuestion&) override { return false; }
    bool allow_row(const DraftQuestion& question) override {
      if (question.depth > 1) return false;
      asked.push_back(question);
      return true;
    }
    void observe(const TokenTree&, const Verdict&) override {}
    std::string_view name() const override { return "recorder"; }
    std::vector<DraftQuestion> asked;
  };
  Sequence run({1});
  run.step({2, 3, 4}, 1);
  Recorder policy;
  const TokenTree& tree = run.drafter.propose(run.context, policy);
  ASSERT_EQ(tree.size(), 5);
  ASSERT_EQ(policy.asked.size(), 4u);
  double left = 1;
  for (int rank = 0; rank < 4; ++rank) {
    const DraftQuestion& question = policy.asked[static_cast<std::size_t>(rank)];
    EXPECT_EQ(question.parent, 0);
    EXPECT_NEAR(question.next_confidence, run.drafter.confidence(rank) / left, 1e-12);
    EXPECT_FLOAT_EQ(tree.confidence(rank + 1), static_cast<float>(run.drafter.confidence(rank)));
    left -= run.drafter.confidence(rank);
  }
}

TEST(Recycle, NothingOfAPromptReachesTheNext) {
  Sequence run({1});
  for (int i = 0; i < 5; ++i) run.step({2, 1}, 1);
  EXPECT_GT(run.propose().size(), 1);
  const auto expect_fresh = [&] {
    RecycleDrafter fresh{TokenMask()};
    if (run.context.size() > 0) fresh.read(run.context);
    for (TokenId token = 0; token < kVocabulary; ++token) {
      EXPECT_EQ(list(run.drafter.successors(token)), list(fresh.successors(token)));
    }
    for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(run.drafter.confidence(rank), fresh.confidence(rank));
  };
  run.context.push(9);  // the same text with another turn
  run.propose();
  expect_fresh();
  run.step({2, 1}, 1);
  run.context.pop(1);  // cut
  run.propose();
  expect_fresh();
  run.step({2, 1}, 1);
  run.drafter.begin();  // the very text is a prompt now
  run.propose();
  expect_fresh();
  run.step({2, 1}, 1);
  run.drafter.reset();
  run.context.clear();
  expect_fresh();
}

}  // namespace
}  // namespace tandem
