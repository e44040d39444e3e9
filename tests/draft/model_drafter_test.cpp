// The model drafter on tiny models: its cache always follows the committed tokens, and its draws are what it says.
#include "draft/model_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "draft/registry.h"
#include "src/base/error.h"
#include "src/sample/logprobs.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

constexpr int kVocabulary = 108;  // real tokens of the tiny model; its rows 108..111 are padding

TokenMask mask_of(int size) { return TokenMask(std::vector<bool>(static_cast<std::size_t>(size), true)); }

ModelDrafter make_drafter(TinyModel& tiny, double temperature, int context = 512, std::uint64_t seed = 5) {
  SamplingOptions sampling;
  sampling.temperature = temperature;
  return ModelDrafter(tiny.model, context, KvType::f16, sampling, Noise{seed, 0}, mask_of(kVocabulary));
}

Context random_context(int tokens, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Context context;
  context.push(random_tokens(random, tokens));
  return context;
}

const TokenTree& propose(Drafter& drafter, Context& context, int length, int room = kMaxTreeNodes) {
  FixedLength policy(length, kMaxTreeNodes, 0);
  policy.begin_step({room, kMaxTreeNodes});
  return drafter.propose(context, policy);
}

std::vector<TokenId> tokens_of(const TokenTree& tree) {
  std::vector<TokenId> tokens;
  for (int node = 0; node < tree.size(); ++node) tokens.push_back(tree.token(node));
  return tokens;
}

std::vector<TokenId> copy(std::span<const TokenId> tokens) { return {tokens.begin(), tokens.end()}; }

// Commits the first `accepted` drafted tokens and one more, as verification would.
void commit(Context& context, const TokenTree& tree, int accepted, TokenId next) {
  for (int node = 1; node <= accepted; ++node) context.push(tree.token(node));
  context.push(next);
}

// The cache holds the context and the drafted tokens but the last, and where `bits`, as a prefill of them would.
void expect_cache_follows(TinyModel& tiny, const ModelDrafter& drafter, const Context& context, const TokenTree& tree,
                          bool bits) {
  std::vector<TokenId> expected = copy(context.tokens());
  for (int node = 1; node + 1 < tree.size(); ++node) expected.push_back(tree.token(node));
  ASSERT_EQ(copy(drafter.cached()), expected);
  ASSERT_EQ(drafter.cache().size(), static_cast<int>(expected.size()));
  if (!bits) return;
  KvCache fresh = tiny.model.make_cache(512, KvType::f16);
  feed(tiny.model, fresh, expected, 50);
  for (int layer = 0; layer < tiny.model.spec().layers; ++layer) {
    ASSERT_EQ(drafter.cache().snapshot(layer), fresh.snapshot(layer));
  }
}

TEST(ModelDrafter, ProposesAChainDrawnFromItsProposals) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 0.9);
  Sampler sampler({.temperature = 0.9}, Noise{5, 0}, mask_of(kVocabulary));
  Context context = random_context(30);
  const TokenTree& tree = propose(drafter, context, 5);
  ASSERT_EQ(tree.size(), 6);
  KvCache cache = tiny.model.make_cache(512, KvType::f16);
  Context history = context;
  std::vector<float> logits = feed(tiny.model, cache, context.tokens());
  for (int node = 0; node < 5; ++node) {
    Distribution expected;
    sampler.distribution(logits, history, expected);
    ASSERT_NE(tree.proposal(node), nullptr);
    EXPECT_EQ(tree.proposal(node)->tokens, expected.tokens);
    EXPECT_EQ(tree.proposal(node)->probabilities, expected.probabilities);
    const TokenId token = tree.token(node + 1);
    EXPECT_EQ(token, sampler.draw(expected, context.position(), node + 1, DrawPurpose::draft));
    EXPECT_EQ(tree.parent(node + 1), node);
    EXPECT_EQ(tree.kind(node + 1), ChildKind::sampled);
    EXPECT_EQ(tree.source(node + 1), DraftSource::model);
    EXPECT_EQ(tree.confidence(node + 1), static_cast<float>(expected[token]));
    history.push(token);
    logits = feed(tiny.model, cache, std::vector<TokenId>{token});
  }
  EXPECT_EQ(tree.proposal(5), nullptr);
}

TEST(ModelDrafter, CacheFollowsTheCommittedTokensAfterAnyAcceptance) {
  constexpr int kLength = 4;
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 1.0);
  std::mt19937_64 random(31);
  Context context = random_context(10);
  for (int round = 0; round < 40; ++round) {
    const TokenTree& tree = propose(drafter, context, kLength);
    ASSERT_EQ(tree.size(), kLength + 1);
    ASSERT_NO_FATAL_FAILURE(expect_cache_follows(tiny, drafter, context, tree, round % 4 == 3)) << "round " << round;
    constexpr int kAccepted[] = {0, 1, kLength - 1, kLength, kLength, 0};
    commit(context, tree, kAccepted[round % 6], static_cast<TokenId>(random() % 105));
    if (round % 11 == 10) context.pop(5);             // a stop was found inside the block: tokens are cut
    if (round % 13 == 12) context.push(3);            // a step without drafting
    if (round == 25) context = random_context(7, 9);  // another prompt, without a reset
  }
}

// Draft and target are one model: at temperature 0 the target agrees with every token, round after round.
TEST(ModelDrafter, DraftEqualToTheTargetIsAlwaysAccepted) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 0);
  Sampler greedy({.temperature = 0}, Noise{}, mask_of(kVocabulary));
  KvCache target = tiny.model.make_cache(512, KvType::f16);
  Context context = random_context(12);
  feed(tiny.model, target, context.tokens().first(11));
  for (int round = 0; round < 60; ++round) {
    const TokenTree& tree = propose(drafter, context, 4);
    ASSERT_EQ(tree.size(), 5);
    ASSERT_NO_FATAL_FAILURE(expect_cache_follows(tiny, drafter, context, tree, round % 10 == 9)) << "round " << round;
    const Logits logits = feed(tiny.model, target, tree);
    TokenId next = 0;
    for (int node = 0; node < tree.size(); ++node) {
      Distribution p;
      greedy.distribution(logits.row(node), context, p);
      next = p.tokens.front();
      if (node == 4) break;
      ASSERT_EQ(next, tree.token(node + 1)) << "round " << round << ", node " << node;
    }
    commit(context, tree, 4, next);
  }
}

TEST(ModelDrafter, LongPromptsAreReadInPassesThatTheModelCanTake) {
  TinyModel tiny({}, "reference", 1, kMaxTreeNodes);
  ASSERT_EQ(tiny.model.max_rows(), 64);
  ModelDrafter drafter = make_drafter(tiny, 0.8);
  for (const int tokens : {1, 63, 64, 65, 128, 200}) {
    Context context = random_context(tokens, tokens);
    const TokenTree& tree = propose(drafter, context, 2);
    ASSERT_EQ(tree.size(), 3);
    ASSERT_NO_FATAL_FAILURE(expect_cache_follows(tiny, drafter, context, tree, true));
  }
}

TEST(ModelDrafter, StaysWithinLengthRoomAndNodesAndSpendsNothingForNoDraft) {
  TinyModel tiny;
  Context context = random_context(20);
  for (const int length : {0, 1, 6, 63}) {
    for (const int room : {0, 1, 5, 100}) {
      for (const int nodes : {1, 2, 9, kMaxTreeNodes}) {
        ModelDrafter drafter = make_drafter(tiny, 0.7);
        FixedLength policy(length, kMaxTreeNodes, 0);
        policy.begin_step({room, nodes});
        const int drafted = std::min({length, room, nodes - 1});
        EXPECT_EQ(drafter.propose(context, policy).size(), 1 + drafted);
        EXPECT_EQ(drafter.cache().size(), drafted == 0 ? 0 : 20 + drafted - 1);
        EXPECT_EQ(drafter.take_warning(), "");
      }
    }
  }
}

TEST(ModelDrafter, LeavesTheContextAsItWas) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 0.7);
  Context context = random_context(20);
  context.set_dropped(9);
  const std::vector<TokenId> before = copy(context.tokens());
  propose(drafter, context, 6);
  EXPECT_EQ(copy(context.tokens()), before);
  EXPECT_EQ(context.position(), 29u);
}

TEST(ModelDrafter, LeavesTheContextAsItWasWhenItsLogitsAreNoNumbers) {
  TinyOptions options;
  options.edit = [](std::string_view name, std::string& data) {
    if (name != "output_norm.weight") return;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t i = 0; i < data.size(); i += 4) std::memcpy(data.data() + i, &nan, 4);
  };
  TinyModel tiny(options);
  ModelDrafter drafter = make_drafter(tiny, 0.7);
  Context context = random_context(20);
  EXPECT_THROW(propose(drafter, context, 6), Error);
  EXPECT_EQ(context.size(), 20);
}

// The draft's context is smaller than the text: it drafts while it can, then says so once and proposes nothing.
TEST(ModelDrafter, FullDraftContextStopsDraftingWithOneWarning) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 1.0, 32);
  Context context = random_context(20);
  std::vector<std::string> warnings;
  for (int round = 0; round < 40; ++round) {
    const int size = context.size();
    const TokenTree& tree = propose(drafter, context, 16);
    EXPECT_EQ(tree.size(), 1 + std::clamp(32 - size + 1, 0, 16)) << size << " tokens";
    if (std::string warning = drafter.take_warning(); !warning.empty()) warnings.push_back(std::move(warning));
    commit(context, tree, tree.size() > 2 ? 1 : 0, static_cast<TokenId>(round));
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings.front(), testing::HasSubstr("draft context of 32 tokens is full"));
  drafter.reset();
  Context again = random_context(8);
  EXPECT_EQ(propose(drafter, again, 3).size(), 4);
}

// Target and draft both end at 64 tokens and 60 are there: the room in the budget keeps every draft inside.
TEST(ModelDrafter, DraftsEndAtTheEndOfTheContext) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 1.0, 64);
  Context context = random_context(48);
  while (context.size() < 64) {
    const TokenTree& tree = propose(drafter, context, 16, 64 - context.size() - 1);
    EXPECT_LE(context.size() + tree.max_depth() + 1, 64);
    EXPECT_EQ(drafter.take_warning(), "");
    commit(context, tree, tree.size() > 3 ? 2 : 0, 1);
  }
}

TEST(ModelDrafter, NeverDraftsPaddingAndNeverReadsPastItsRows) {
  TinyOptions options;
  options.edit = [](std::string_view name, std::string& data) {  // padding rows that would win every draw
    if (name != "output.weight") return;
    const std::size_t row = data.size() / 112;
    for (std::size_t i = kVocabulary * row; i < data.size(); i += 4) {
      const float large = 100;
      std::memcpy(data.data() + i, &large, 4);
    }
  };
  options.tied = false;
  TinyModel tiny(options);
  for (const int target_rows : {kVocabulary, 50, 300}) {  // a larger mask allows the padding; the row ends at 112
    ModelDrafter drafter(tiny.model, 512, KvType::f16, {.temperature = 1.5, .top_k = 0, .top_p = 1}, Noise{6, 0},
                         mask_of(target_rows));
    Context context = random_context(20);
    for (int round = 0; round < 10; ++round) {
      const TokenTree& tree = propose(drafter, context, 8);
      for (int node = 1; node < tree.size(); ++node) ASSERT_LT(tree.token(node), std::min(target_rows, 112));
      commit(context, tree, 2, 1);
    }
  }
}

TEST(ModelDrafter, TokenWithoutARowInTheDraftStopsDraftingWhileItIsThere) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 1.0);
  Context context = random_context(20);
  EXPECT_EQ(propose(drafter, context, 4).size(), 5);
  context.push(112);
  EXPECT_EQ(tokens_of(propose(drafter, context, 4)), std::vector<TokenId>{112});
  EXPECT_THAT(drafter.take_warning(), testing::HasSubstr("token 112 has no row in the draft model (it has 112)"));
  context.push(1);
  EXPECT_EQ(propose(drafter, context, 4).size(), 1);
  EXPECT_EQ(drafter.take_warning(), "");
  context.pop(2);
  EXPECT_EQ(propose(drafter, context, 4).size(), 5);
}

// What the policy is asked: confidences are known before a row and not before a draft step, and never depend on the
// token that is about to be drawn.
class Recorder final : public LengthPolicy {
 public:
  void begin_step(const DraftBudget&) override {}
  bool allow_draft_step(const DraftQuestion& question) override {
    steps.push_back(question);
    return question.depth <= 4;
  }
  bool allow_row(const DraftQuestion& question) override {
    if (question.siblings > 0) return false;
    rows.push_back(question);
    return question.depth <= refuse_row_after;
  }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "recorder"; }
  std::vector<DraftQuestion> steps, rows;
  int refuse_row_after = 100;
};

TEST(ModelDrafter, AsksBeforeEachStepAndEachRowWithTheLargestProbability) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 1.0);
  Context context = random_context(20);
  Recorder policy;
  const TokenTree& tree = drafter.propose(context, policy);
  ASSERT_EQ(tree.size(), 5);
  ASSERT_EQ(policy.steps.size(), 5u);
  ASSERT_EQ(policy.rows.size(), 4u);
  double path = 1;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(policy.steps[i].depth, i + 1);
    EXPECT_EQ(policy.steps[i].nodes, i + 1);
    EXPECT_LT(policy.steps[i].next_confidence, 0);
    EXPECT_NEAR(policy.steps[i].path_confidence, path, 1e-6);
    if (i == 4) break;
    const std::vector<double>& q = tree.proposal(i)->probabilities;
    EXPECT_EQ(policy.rows[i].next_confidence, *std::max_element(q.begin(), q.end()));
    EXPECT_EQ(policy.rows[i].source, DraftSource::model);
    path *= tree.confidence(i + 1);
  }
  policy.refuse_row_after = 2;
  const TokenTree& shorter = drafter.propose(context, policy);
  EXPECT_EQ(shorter.size(), 3);
}

TEST(ModelDrafter, GreedyConfidenceIsTheModelsOwnAndTheFeedCountsWhatItHasNotSeen) {
  TinyModel tiny;
  ModelDrafter greedy = make_drafter(tiny, 0);
  ModelDrafter sampled(tiny.model, 512, KvType::f16, {.temperature = 1, .top_k = 0, .top_p = 1}, Noise{5, 0},
                       mask_of(tiny.model.spec().vocab));
  Context context = random_context(20);
  Recorder of_greedy, of_sampled;
  greedy.propose(context, of_greedy);
  sampled.propose(context, of_sampled);
  // The first candidate follows the same context in both; temperature 1 without filters is the model's own
  // distribution.
  EXPECT_LT(of_greedy.rows[0].next_confidence, 1);
  EXPECT_NEAR(of_greedy.rows[0].next_confidence, of_sampled.rows[0].next_confidence, 1e-6);
  EXPECT_EQ(of_greedy.steps[0].feed, 20);
  EXPECT_EQ(of_greedy.steps[1].feed, 1);
  context.push(1);
  greedy.propose(context, of_greedy);
  EXPECT_EQ(of_greedy.steps[5].feed, 1);
}

// The nodes that a tree of the model drafter may have, with the probability of their paths, by brute force.
struct Ranked {
  double probability;
  std::vector<TokenId> path;
};
std::vector<Ranked> likeliest_paths(TinyModel& tiny, const Context& context, int depth, std::size_t count) {
  std::vector<Ranked> all, level{{1, {}}};
  for (int d = 0; d < depth; ++d) {
    std::vector<Ranked> next;
    for (const Ranked& parent : level) {
      KvCache cache = tiny.model.make_cache(512, KvType::f16);
      std::vector<TokenId> tokens = copy(context.tokens());
      tokens.insert(tokens.end(), parent.path.begin(), parent.path.end());
      const std::vector<float> logits = feed(tiny.model, cache, tokens);
      const double normaliser = log_sum_exp(logits);
      for (TokenId token = 0; token < kVocabulary; ++token) {
        Ranked child{parent.probability * std::exp(logits[static_cast<std::size_t>(token)] - normaliser), parent.path};
        child.path.push_back(token);
        next.push_back(std::move(child));
      }
    }
    std::sort(next.begin(), next.end(), [](const Ranked& a, const Ranked& b) { return a.probability > b.probability; });
    next.resize(std::min(next.size(), count));  // no path below a worse one can be among the `count` best
    all.insert(all.end(), next.begin(), next.end());
    level = std::move(next);
  }
  std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) { return a.probability > b.probability; });
  all.resize(count);
  return all;
}

std::vector<TokenId> path_to(const TokenTree& tree, int node) {
  std::vector<TokenId> path;
  for (int i = 1; i <= node; ++i) {
    if (tree.ancestors(node) >> i & 1) path.push_back(tree.token(i));
  }
  return path;
}

// "Sum of path probabilities": at temperature 0 a tree of n nodes is the n likeliest paths.
TEST(ModelDrafter, GreedyTreeHasTheLikeliestNodesWhateverTheBudget) {
  constexpr int kDepth = 3;
  TinyModel tiny;
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const int drafted : {1, 3, 6, 10}) {
      ModelDrafter drafter = make_drafter(tiny, 0);
      Context context = random_context(15, seed);
      FixedLength policy(kDepth, 1 + drafted, 0, DraftShape::tree);
      policy.begin_step({kDepth, kMaxTreeNodes});
      const TokenTree& tree = drafter.propose(context, policy);
      ASSERT_EQ(tree.size(), 1 + drafted);
      std::vector<std::vector<TokenId>> paths, expected;
      for (const Ranked& one : likeliest_paths(tiny, context, kDepth, static_cast<std::size_t>(drafted))) {
        expected.push_back(one.path);
      }
      for (int node = 1; node < tree.size(); ++node) {
        paths.push_back(path_to(tree, node));
        EXPECT_EQ(tree.kind(node), ChildKind::deterministic);
        EXPECT_EQ(tree.source(node), DraftSource::model);
      }
      if (drafted <= ModelDrafter::kMostChildren) {  // beyond, a node may have no more children
        EXPECT_THAT(paths, testing::UnorderedElementsAreArray(expected)) << "seed " << seed;
      } else {
        EXPECT_EQ(paths.front(), expected.front());
      }
      EXPECT_EQ(copy(context.tokens()), copy(random_context(15, seed).tokens()));
    }
  }
}

// Each is drawn from what its elder siblings left; under shared noise they are the best by the noise of the place.
TEST(ModelDrafter, SampledSiblingsAreDrawnWithoutReplacement) {
  TinyModel tiny;
  for (const DraftDraw draw : {DraftDraw::independent, DraftDraw::shared_noise}) {
    const SamplingOptions sampling{.temperature = 0.9};
    ModelDrafter drafter(tiny.model, 512, KvType::f16, sampling, Noise{5, 0}, mask_of(kVocabulary), draw);
    Sampler sampler(sampling, Noise{5, 0}, mask_of(kVocabulary));
    Context context = random_context(30);
    FixedLength policy(2, 9, 0, DraftShape::tree);
    policy.begin_step({9, kMaxTreeNodes});
    const TokenTree& tree = drafter.propose(context, policy);
    ASSERT_EQ(tree.size(), 9);
    int siblings = 0;
    for (int node = 0; node < tree.size(); ++node) {
      if (tree.next_child(node, node) < 0) continue;
      Distribution left = *tree.proposal(node);
      for (int child = tree.next_child(node, node); child >= 0; child = tree.next_child(node, child)) {
        siblings += left.size() < tree.proposal(node)->size();
        const std::uint32_t position = context.position() + static_cast<std::uint32_t>(tree.depth(node));
        const TokenId token = draw == DraftDraw::shared_noise
                                  ? sampler.draw_with_noise(left, position)
                                  : sampler.draw(left, context.position(), child, DrawPurpose::draft);
        EXPECT_EQ(tree.token(child), token);
        EXPECT_EQ(tree.kind(child), ChildKind::sampled);
        EXPECT_EQ(tree.confidence(child), static_cast<float>(left[token]));
        left.remove(token);
      }
    }
    EXPECT_GT(siblings, 0);
  }
}

// Nodes of another source stay; the model may put its own beside them and never doubles a token.
TEST(ModelDrafter, GrowsBesideTheNodesOfAnotherSource) {
  TinyModel tiny;
  for (const double temperature : {0.0, 0.9}) {
    ModelDrafter drafter = make_drafter(tiny, temperature);
    Context context = random_context(20);
    std::array<bool, 2> beside{};
    for (TokenId given = 0; given < 40; ++given) {
      TokenTree tree(context.tokens().back());
      tree.add(0, given, ChildKind::deterministic, DraftSource::ngram, 0.3f);
      FixedLength policy(2, 8, 0, DraftShape::tree);
      policy.begin_step({9, kMaxTreeNodes});
      drafter.grow(tree, context, policy);
      ASSERT_EQ(tree.size(), 8);
      EXPECT_EQ(tree.source(1), DraftSource::ngram);
      for (int node = 1; node < tree.size(); ++node) {
        EXPECT_EQ(tree.child(tree.parent(node), tree.token(node)), node) << "a token twice";
        if (node > 1 && tree.parent(node) < 2) beside[static_cast<std::size_t>(tree.parent(node))] = true;
      }
    }
    EXPECT_TRUE(beside[0]) << "no node beside";
    EXPECT_TRUE(beside[1]) << "no node below";
  }
}

// Refuses to read more than so many tokens at once.
class ShortReader final : public LengthPolicy {
 public:
  void begin_step(const DraftBudget&) override {}
  bool allow_draft_step(const DraftQuestion& question) override {
    return question.depth <= 3 && question.feed <= 40 && question.siblings == 0;
  }
  bool allow_row(const DraftQuestion& question) override { return question.siblings == 0; }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "short-reader"; }
};

// The last 32 tokens are then a text of their own to it, until another text comes.
TEST(ModelDrafter, SkipsALongUnreadTextWhereThePolicyWantsIt) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 1.0), beside = make_drafter(tiny, 1.0);
  ShortReader policy;
  Context context = random_context(200), window;
  EXPECT_EQ(drafter.first(TokenTree(context.tokens().back()), context).feed, 200);
  window.push(context.tokens().last(32));
  window.set_dropped(168);
  for (int round = 0; round < 5; ++round) {
    const std::vector<TokenId> drafted = tokens_of(drafter.propose(context, policy));
    EXPECT_EQ(drafted.size(), 4u);
    const TokenTree& tree = beside.propose(window, policy);
    EXPECT_EQ(drafted, tokens_of(tree)) << "round " << round;
    EXPECT_EQ(drafter.cached().size(), static_cast<std::size_t>(context.size() + 2));
    EXPECT_EQ(drafter.cache().size(), beside.cache().size());
    commit(context, tree, 1, static_cast<TokenId>(round));
    commit(window, tree, 1, static_cast<TokenId>(round));
  }
  Context other = random_context(201, 8);  // differs where the first text was skipped
  EXPECT_EQ(drafter.first(TokenTree(other.tokens().back()), other).feed, 201);
  EXPECT_EQ(propose(drafter, other, 2).size(), 3);
  EXPECT_EQ(drafter.cache().size(), 202);
  Context shorter = random_context(20, 9);
  EXPECT_EQ(propose(drafter, shorter, 2).size(), 3);
  EXPECT_EQ(drafter.cache().size(), 21);
}

// Takes what a trial tells.
class Trier final : public LengthPolicy {
 public:
  void begin_step(const DraftBudget&) override {}
  bool allow_draft_step(const DraftQuestion& question) override {
    feeds.push_back(question.feed);
    return question.depth <= 2 && question.siblings == 0;
  }
  bool allow_row(const DraftQuestion& question) override { return question.siblings == 0; }
  bool allow_trial(const DraftQuestion& step, int reads) override {
    EXPECT_EQ(step.depth, 1);
    this->reads.push_back(reads);
    return true;
  }
  void observe_trial(DraftSource, double confidence, bool came) override { told.emplace_back(confidence, came); }
  void observe(const TokenTree&, const Verdict&) override {}
  std::string_view name() const override { return "trier"; }
  std::vector<int> feeds, reads;
  std::vector<std::pair<double, bool>> told;
};

TEST(ModelDrafter, TriesItselfOnTheBeginningOfAPromptOnce) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 0);
  // A text that the model itself goes on with half of the time, so that some of it is foretold.
  Context context = random_context(9);
  std::mt19937_64 random(3);
  while (context.size() < 60) {
    const TokenTree& tree = propose(drafter, context, 1);
    context.push(random() % 2 == 0 ? tree.token(1) : random_tokens(random, 1).front());
  }
  std::vector<std::pair<double, bool>> expected;
  for (int row = ModelDrafter::kTrialBegins; row + 1 < ModelDrafter::kTrialTokens; ++row) {
    KvCache cache = tiny.model.make_cache(512, KvType::f16);
    const std::vector<float> logits =
        feed(tiny.model, cache, context.tokens().first(static_cast<std::size_t>(row + 1)));
    const auto best = std::max_element(logits.begin(), logits.end());
    expected.emplace_back(std::exp(*best - log_sum_exp(logits)), best - logits.begin() == context.tokens()[row + 1]);
  }
  EXPECT_THAT(expected, testing::Contains(testing::Field(&std::pair<double, bool>::second, true)));
  EXPECT_THAT(expected, testing::Contains(testing::Field(&std::pair<double, bool>::second, false)));

  drafter.reset();
  for (const int reads : {ModelDrafter::kTrialTokens, 0}) {  // the second time the cache knows them
    Trier policy;
    drafter.begin();
    for (int round = 0; round < 3; ++round) {
      const TokenTree& tree = drafter.propose(context, policy);
      ASSERT_NO_FATAL_FAILURE(expect_cache_follows(tiny, drafter, context, tree, true));
      commit(context, tree, 1, 5);
    }
    EXPECT_THAT(policy.reads, testing::ElementsAre(reads));
    EXPECT_EQ(policy.told, expected);
    EXPECT_EQ(policy.feeds.front(), reads > 0 ? 60 - reads : 60 - 60 + 1);
    context.pop(context.size() - 60);
  }
  Context short_one = random_context(ModelDrafter::kTrialTokens, 4);
  Trier policy;
  drafter.begin();
  commit(short_one, drafter.propose(short_one, policy), 1, 5);
  drafter.propose(short_one, policy);
  EXPECT_THAT(policy.reads, testing::IsEmpty()) << "read at once, and never again";
}

TEST(ModelDrafter, ASeedGivesTheSameProposalsAndAnotherSeedOthers) {
  TinyModel tiny;
  const auto run = [&](std::uint64_t seed) {
    ModelDrafter drafter = make_drafter(tiny, 1.5, 512, seed);
    Context context = random_context(20);
    std::vector<std::vector<TokenId>> all;
    for (int round = 0; round < 5; ++round) {
      const TokenTree& tree = propose(drafter, context, 4);
      all.push_back(tokens_of(tree));
      commit(context, tree, round % 3, 2);
    }
    return all;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(ModelDrafter, ResetForgetsTheSequence) {
  TinyModel tiny;
  ModelDrafter drafter = make_drafter(tiny, 1.0), fresh = make_drafter(tiny, 1.0);
  Context first = random_context(40, 2), second = random_context(15, 3);
  propose(drafter, first, 4);
  drafter.reset();
  EXPECT_EQ(drafter.cached().size(), 0u);
  EXPECT_EQ(drafter.cache().size(), 0);
  EXPECT_EQ(tokens_of(propose(drafter, second, 4)), tokens_of(propose(fresh, second, 4)));
}

TEST(DrafterRegistry, MakesEveryKindByItsName) {
  TinyModel tiny;
  DrafterSetup setup;
  setup.model = &tiny.model;
  setup.context = 128;
  for (const char* kind : {"none", "model", "ngram", "recycle"}) {
    setup.kind = kind;
    const std::unique_ptr<Drafter> drafter = make_drafter(setup);
    EXPECT_EQ(drafter->name(), kind);
    Context context = random_context(10);
    const TokenTree& tree = propose(*drafter, context, 0);
    EXPECT_EQ(tokens_of(tree), std::vector<TokenId>{context.tokens().back()});
    EXPECT_EQ(drafter->take_warning(), "");
  }
}

TEST(DrafterRegistry, NoneIsATreeOfOneNodeWhateverThePolicyAllows) {
  DrafterSetup setup;
  setup.kind = "none";
  const std::unique_ptr<Drafter> drafter = make_drafter(setup);
  Context context = random_context(10);
  EXPECT_EQ(propose(*drafter, context, 8).size(), 1);
}

TEST(DrafterRegistry, RefusesUnknownKindsAndAMissingModel) {
  const auto message = [](const DrafterSetup& setup) -> std::string {
    try {
      make_drafter(setup);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    return {};
  };
  DrafterSetup setup;
  setup.kind = "unheard-of";
  EXPECT_THAT(message(setup), testing::HasSubstr("expected one of none, model, ngram, recycle"));
  EXPECT_THAT(message(setup), testing::HasSubstr("got unheard-of"));
  setup.kind = "model";
  EXPECT_THAT(message(setup), testing::HasSubstr("draft.model"));
}

}  // namespace
}  // namespace tandem::test
