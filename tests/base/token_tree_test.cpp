#include "src/base/token_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tandem {
namespace {

using ::testing::ElementsAre;

constexpr auto kDeterministic = ChildKind::deterministic;
constexpr auto kNgram = DraftSource::ngram;

//      0
//    1   2
//   3 4   5
//  6
TokenTree make_tree() {
  TokenTree tree(10);
  tree.add(0, 11, kDeterministic, kNgram, 0.5f);
  tree.add(0, 12, kDeterministic, kNgram);
  tree.add(1, 13, kDeterministic, kNgram);
  tree.add(1, 14, kDeterministic, kNgram);
  tree.add(2, 13, kDeterministic, kNgram);
  tree.add(3, 16, kDeterministic, DraftSource::model);
  return tree;
}

TEST(TokenTree, StartsAsThePendingTokenAlone) {
  const TokenTree tree(7);
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.token(0), 7);
  EXPECT_EQ(tree.parent(0), -1);
  EXPECT_EQ(tree.depth(0), 0);
  EXPECT_EQ(tree.ancestors(0), 1u);
  EXPECT_EQ(tree.max_depth(), 0);
  EXPECT_EQ(tree.next_child(0, 0), -1);
  EXPECT_EQ(tree.proposal(0), nullptr);
}

TEST(TokenTree, AncestorsAndDepthFollowFromParents) {
  const TokenTree tree = make_tree();
  for (int node = 0; node < tree.size(); ++node) {
    std::uint64_t mask = 0;
    int depth = -1;
    for (int up = node; up >= 0; up = tree.parent(up)) mask |= std::uint64_t{1} << up, ++depth;
    EXPECT_EQ(tree.ancestors(node), mask) << node;
    EXPECT_EQ(tree.depth(node), depth) << node;
  }
  EXPECT_EQ(tree.max_depth(), 3);
  EXPECT_EQ(tree.confidence(1), 0.5f);
  EXPECT_EQ(tree.source(6), DraftSource::model);
}

TEST(TokenTree, ChildrenComeInTheOrderOfAdding) {
  const TokenTree tree = make_tree();
  const auto children = [&](int parent) {
    std::vector<int> nodes;
    for (int i = tree.next_child(parent, parent); i >= 0; i = tree.next_child(parent, i)) nodes.push_back(i);
    return nodes;
  };
  EXPECT_THAT(children(0), ElementsAre(1, 2));
  EXPECT_THAT(children(1), ElementsAre(3, 4));
  EXPECT_THAT(children(2), ElementsAre(5));
  EXPECT_THAT(children(6), ElementsAre());
  EXPECT_EQ(tree.child(1, 13), 3);
  EXPECT_EQ(tree.child(2, 13), 5);
  EXPECT_EQ(tree.child(2, 14), -1);
}

TEST(TokenTree, HoldsAChainOfAllNodes) {
  TokenTree tree(0);
  while (!tree.full()) tree.add(tree.size() - 1, tree.size(), kDeterministic, kNgram);
  EXPECT_EQ(tree.size(), kMaxTreeNodes);
  EXPECT_EQ(tree.max_depth(), kMaxTreeNodes - 1);
  EXPECT_EQ(tree.ancestors(kMaxTreeNodes - 1), ~std::uint64_t{0});
  EXPECT_EQ(tree.next_child(kMaxTreeNodes - 1, kMaxTreeNodes - 1), -1);
}

TEST(TokenTree, ClearForgetsNodesAndProposalsButKeepsTheirMemory) {
  TokenTree tree(0);
  Distribution& first = tree.set_proposal(0);
  first.add(3, 1.0);
  tree.draw_child(0, DraftSource::model, [](const Distribution& left) { return left.tokens.front(); });
  Distribution& second = tree.set_proposal(1);
  second.add(4, 1.0);
  EXPECT_EQ(tree.proposal(0), &first) << "a later proposal moved an earlier one";
  const TokenId* memory = first.tokens.data();
  tree.clear(9);
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.token(0), 9);
  EXPECT_EQ(tree.proposal(0), nullptr);
  EXPECT_EQ(tree.set_proposal(0).size(), 0u);
  tree.set_proposal(0).add(1, 1.0);
  EXPECT_EQ(tree.proposal(0)->tokens.data(), memory);
}

// What is drawn is in the tree: there is no way to leave it out.
TEST(TokenTree, DrawsChildrenFromWhatTheirSiblingsLeave) {
  TokenTree tree(0);
  Distribution& q = tree.set_proposal(0);
  for (const auto& [token, probability] : {std::pair{2, 0.5}, {4, 0.25}, {6, 0.125}, {8, 0.125}}) {
    q.add(token, probability);
  }
  EXPECT_EQ(&tree.left_to_draw(0), tree.proposal(0));
  tree.add(0, 4, kDeterministic, kNgram);
  tree.add(0, 5, kDeterministic, kNgram);  // outside the proposal
  const auto last = [](const Distribution& left) { return left.tokens.back(); };
  const int first = tree.draw_child(0, DraftSource::model, last);
  EXPECT_EQ(tree.token(first), 8);
  EXPECT_EQ(tree.kind(first), ChildKind::sampled);
  EXPECT_EQ(tree.parent(first), 0);
  EXPECT_FLOAT_EQ(tree.confidence(first), 0.125f / 0.75f);
  EXPECT_THAT(tree.left_to_draw(0).tokens, ElementsAre(2, 6));
  EXPECT_EQ(tree.token(tree.draw_child(0, DraftSource::model, last)), 6);
  EXPECT_EQ(tree.token(tree.draw_child(0, DraftSource::model, last)), 2);
  EXPECT_EQ(tree.left_to_draw(0).size(), 0u);
  EXPECT_EQ(tree.proposal(0)->size(), 4u) << "rules take the children out themselves";
}

TEST(Verdict, CountsTheAcceptedPath) {
  Verdict verdict;
  verdict.extend(0);
  EXPECT_EQ(verdict.accepted(), 0);
  verdict.extend(2);
  verdict.extend(5);
  EXPECT_EQ(verdict.accepted(), 2);
  EXPECT_THAT(verdict.path(), ElementsAre(0, 2, 5));
}

}  // namespace
}  // namespace tandem
