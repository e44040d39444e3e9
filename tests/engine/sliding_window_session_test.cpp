// Whole sessions of a model with sliding windows: text past window and ring is plain decoding's, whatever drafts, and a
// conversation that goes back further than the ring reads its prompt again.
#include <gtest/gtest.h>

#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

constexpr int kRing = 16 + 128;  // window and rows of a pass of the tiny models
constexpr int kAnswer = 180;     // with prompts of 20, past the ring

class SlidingSession : public testing::TestWithParam<std::string> {
 protected:
  static Rig& rig() {
    static std::map<std::string, std::unique_ptr<Rig>> rigs;
    std::unique_ptr<Rig>& rig = rigs[GetParam()];
    if (!rig) rig = std::make_unique<Rig>(GetParam(), 1, std::nullopt, "gemma3");
    return *rig;
  }
  static RigOptions options(int length = 6) { return {.length = length, .capacity = 320, .prefill_chunk = 40}; }
  static std::vector<TokenId> repeating_prompt() {
    std::vector<TokenId> prompt = random_prompt(3, 5);
    for (int i = 0; i < 15; ++i) prompt.push_back(prompt[i]);
    return prompt;
  }
};

TEST_P(SlidingSession, GreedyIdsPastTheRingEqualPlainForEveryDrafter) {
  const std::vector<TokenId> prompt = repeating_prompt();
  const std::vector<TokenId> truth = rig().plain(prompt, kAnswer, options());
  ASSERT_GT(static_cast<int>(truth.size()), kRing);
  for (const std::string kind : {"ngram", "recycle", "model", "self", "hybrid", "oracle", "random-tree"}) {
    SCOPED_TRACE(kind);
    Engine engine = rig().engine(rig().any_drafter(kind, truth, options()), options());
    ASSERT_EQ(run(engine, prompt, kAnswer), truth);
    EXPECT_GT(engine.metrics().total.accepted, 0);
    rig().expect_true_cache(engine);
    // Back by less than the ring: only what differs is read again.
    std::vector<TokenId> again(truth.begin(), truth.end() - 30);
    EXPECT_EQ(engine.start(again), static_cast<int>(again.size()) - 1);
    while (engine.prefill_chunk()) continue;
    EXPECT_EQ(engine.first_token(), truth[again.size()]);
  }
}

TEST_P(SlidingSession, APromptBehindTheRingIsReadAgainFromItsStart) {
  const std::vector<TokenId> prompt = repeating_prompt();
  Engine engine = rig().engine(rig().drafter("self", options()), options());
  const std::vector<TokenId> text = run(engine, prompt, 240);
  for (const int kept : {20, 100}) {
    std::vector<TokenId> other(text.begin(), text.begin() + kept);
    other.push_back((text[kept] + 1) % 105);
    ASSERT_GT(engine.cache().size() - kept, 128);
    EXPECT_EQ(engine.start(other), 0);
    while (engine.prefill_chunk()) continue;
    engine.first_token();
    for (int done = 1; done < 40;) done += checked_step(engine, 40 - done);
    rig().expect_true_cache(engine);
    const std::vector<TokenId> expected = rig().plain(other, 40, options());
    EXPECT_TRUE(std::ranges::equal(engine.context().tokens(), expected));
    run(engine, prompt, 240);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SlidingSession, testing::Values("reference", "cpu"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::test
