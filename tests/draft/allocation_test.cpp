// Drafters take no memory in the step loop once they are warm.
#include <gtest/gtest.h>

#include "draft/registry.h"
#include "tests/model/tiny_model.h"
#include "tests/sample/allocation_counter.h"

namespace tandem::test {
namespace {

using tandem::testing::allocations;

// Allocations in 100 steps of growing, partly repeating text, after 100 steps of warming up.
long allocations_when_warm(Drafter& drafter) {
  std::mt19937_64 random(41);
  Context context;
  context.reserve(512);
  context.push(random_tokens(random, 20));
  FixedLength policy(4, 16, 0);
  long before = 0;
  for (int step = 0; step < 200; ++step) {
    if (step == 100) before = allocations();
    policy.begin_step({8, 16});
    const TokenTree& tree = drafter.propose(context, policy);
    if (tree.size() > 1) context.push(tree.token(1));
    context.push(context.tokens()[random() % 20]);
  }
  return allocations() - before;
}

TEST(DraftAllocation, NgramTakesNoMemoryOnceWarm) {
  DrafterSetup setup;
  setup.kind = "ngram";
  setup.context = 512;
  const long at_start = allocations();
  const auto drafter = make_drafter(setup);
  EXPECT_GT(allocations(), at_start) << "the counter does not count";
  EXPECT_EQ(allocations_when_warm(*drafter), 0);
}

TEST(DraftAllocation, NgramWithACorpusTakesNoMemoryOnceWarm) {
  std::mt19937_64 random(42);
  DrafterSetup setup;
  setup.kind = "ngram";
  setup.context = 512;
  std::vector<TokenId> tokens = random_tokens(random, 5000);
  tokens.front() = tokens.back() = Corpus::kBorder;
  setup.corpus = std::make_shared<const Corpus>(std::move(tokens));
  const auto drafter = make_drafter(setup);
  EXPECT_EQ(allocations_when_warm(*drafter), 0);
}

TEST(DraftAllocation, ModelTakesNoMemoryOnceWarm) {
  TinyModel tiny({}, "cpu");
  DrafterSetup setup;
  setup.kind = "model";
  setup.context = 512;
  setup.model = &tiny.model;
  for (const char* kind : {"model", "hybrid"}) {
    setup.kind = kind;
    const auto drafter = make_drafter(setup);
    EXPECT_EQ(allocations_when_warm(*drafter), 0) << kind;
  }
}

TEST(DraftAllocation, TrimmedAndQuantizedModelTakesNoMemoryOnceWarm) {
  TinyModel tiny({}, "cpu", 1, 128, {.quantize = Format::q4_0, .head_tokens = {1, 2, 3, 5, 8, 13, 21}});
  DrafterSetup setup;
  setup.kind = "model";
  setup.context = 512;
  setup.model = &tiny.model;
  const auto drafter = make_drafter(setup);
  EXPECT_EQ(allocations_when_warm(*drafter), 0);
}

}  // namespace
}  // namespace tandem::test
