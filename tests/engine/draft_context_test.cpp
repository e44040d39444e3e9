// Where a draft's context ends, and what a draft that is its own target must show: every token it proposes stands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft/model_drafter.h"
#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;

class DraftContext : public ::testing::TestWithParam<std::string> {
 protected:
  Rig& rig() { return Rig::shared(GetParam()); }
};

// B29. The draft's context is smaller than the target's, or both end at the same token: the text is plain's, no draft
// leaves the room that is there, and what stops drafting is said once.
TEST_P(DraftContext, EndsDraftingWithOneWarningAndTheTextGoesOn) {
  struct Case {
    int capacity, draft_context, prompt;
    bool fills;
  };
  for (const Case& c : {Case{160, 40, 20, true}, {160, 40, 39, true}, {160, 40, 60, true}, {64, 64, 60, false}}) {
    const std::vector<TokenId> prompt = random_prompt(11, c.prompt);
    for (const std::string kind : {"model", "hybrid", "retokenize-self", "retokenize-hybrid"}) {
      if (kind == "retokenize-hybrid" && !c.fills) continue;  // its tokens for the prompt are more than 64
      SCOPED_TRACE(kind + " with " + std::to_string(c.draft_context) + " of " + std::to_string(c.capacity) + ", " +
                   std::to_string(c.prompt) + " in the prompt");
      const RigOptions options{.length = 16, .capacity = c.capacity};
      const int tokens = std::min(c.capacity - c.prompt, 60);
      Engine engine = rig().engine(rig().drafter(kind, options, c.draft_context), options);
      std::vector<std::string> warnings;
      std::int64_t late = 0;  // drafted by the model once it is full
      for (int answer = 0; answer < 2; ++answer) {
        begin(engine, prompt);
        for (int done = 1; done < tokens;) {
          const std::int64_t before = engine.metrics().by_source[static_cast<int>(DraftSource::model)].proposed;
          const bool full = engine.context().size() > c.draft_context;
          const int room = engine.room();
          done += checked_step(engine, tokens - done);
          EXPECT_LE(engine.last_tree().max_depth(), std::min(room, tokens) - 1);
          const std::int64_t after = engine.metrics().by_source[static_cast<int>(DraftSource::model)].proposed;
          if (full) late += after - before;
          if (std::string warning = engine.drafter().take_warning(); !warning.empty()) warnings.push_back(warning);
        }
        const std::span<const TokenId> text = engine.context().tokens();
        EXPECT_EQ(std::vector<TokenId>(text.begin(), text.end()), rig().plain(prompt, tokens, options));
      }
      EXPECT_EQ(warnings.size(), c.fills ? 1u : 0u);
      if (c.fills) {
        EXPECT_THAT(warnings.front(), HasSubstr("draft context of 40 tokens is full"));
      }
      // Drafts through text count their own tokens, not the target's.
      if (!kind.starts_with("retokenize")) {
        EXPECT_EQ(late, 0);
      }
    }
  }
}

// Steps of an engine whose draft is its target: each tested token that the model proposed stands.
class SelfDraft : public DraftContext {
 protected:
  // Returns how many of the model's tokens were tested. `prompt`: begun anew, what the cache shares of it is kept.
  static std::int64_t expect_all_accepted(Engine& engine, const std::vector<TokenId>& prompt, int tokens) {
    begin(engine, prompt);
    std::int64_t tested = 0;
    for (int done = 1; done < tokens;) {
      done += checked_step(engine, tokens - done);
      const TokenTree& tree = engine.last_tree();
      const Verdict& verdict = engine.last_verdict();
      std::uint64_t accepted = 0;
      for (const int node : verdict.path()) accepted |= std::uint64_t{1} << node;
      for (int node = 1; node < tree.size(); ++node) {
        if (tree.source(node) != DraftSource::model || (verdict.tested >> node & 1) == 0) continue;
        ++tested;
        EXPECT_TRUE(accepted >> node & 1) << "token " << done << ", node " << node;
      }
    }
    return tested;
  }

  Engine engine_of(Rig& rig, const std::string& kind, const RigOptions& options) {
    DrafterSetup setup;
    setup.kind = kind;
    setup.sampling = options.sampling;
    setup.noise = {options.seed, 0};
    setup.model = &rig.target();
    setup.context = options.capacity;
    setup.kv_type = rig.kv_type();
    setup.min_match = 1;
    return rig.engine(make_drafter(setup), options);
  }
};

TEST_P(SelfDraft, EveryTestedTokenStandsAtEveryLengthAndCacheType) {
  for (const std::optional<KvType> kv : {std::optional<KvType>{}, std::optional(KvType::q8_0)}) {
    Rig& rig = Rig::shared(GetParam(), 1, kv);
    for (const int length : {1, 2, 3, 4, 7, 16, kAuto}) {
      SCOPED_TRACE(std::to_string(length) + " in " + std::string(name_of(rig.kv_type())));
      Engine engine = engine_of(rig, "model", {.length = length, .capacity = 160});
      EXPECT_GT(expect_all_accepted(engine, random_prompt(21, 12), 80), length == 1 ? 30 : 40);
    }
  }
}

TEST_P(SelfDraft, EveryTestedTokenStandsWhenThePromptSharesAPrefix) {
  Engine engine = engine_of(rig(), "model", {.length = 4, .capacity = 160});
  std::vector<TokenId> prompt = random_prompt(22, 20);
  expect_all_accepted(engine, prompt, 40);
  const std::vector<TokenId> longer(engine.context().tokens().begin(), engine.context().tokens().begin() + 45);
  EXPECT_GT(expect_all_accepted(engine, longer, 40), 20);  // the text goes on
  prompt.resize(13);                                       // and here it parts
  prompt.push_back(7);
  EXPECT_GT(expect_all_accepted(engine, prompt, 40), 20);
  engine.cut(5);  // tokens behind a stop
  EXPECT_GT(expect_all_accepted(engine, prompt, 40), 20);
}

// The repeats of a prompt that goes on otherwise are rejected, and the model's drafts behind them never tested; the
// next ones stand again.
TEST_P(SelfDraft, EveryTestedTokenStandsAfterRejectedRepeats) {
  std::vector<TokenId> prompt = random_prompt(23, 6);
  for (int i = 0; i < 24; ++i) prompt.push_back(prompt[static_cast<std::size_t>(i)]);
  std::int64_t rejected = 0, tested = 0;
  for (const int length : {2, 5, kAuto}) {
    Engine engine = engine_of(rig(), "hybrid", {.length = length, .capacity = 160});
    tested += expect_all_accepted(engine, prompt, 80);
    const DraftCounts& repeats = engine.metrics().by_source[static_cast<int>(DraftSource::ngram)];
    rejected += repeats.tested - repeats.accepted;
  }
  EXPECT_GT(tested, 60);
  EXPECT_GT(rejected, 0);
}

// B28. Whatever became of the last proposal, the draft's cache holds the committed tokens less the pending one, and
// after them only what was drafted.
TEST_P(SelfDraft, TheDraftsCacheFollowsEveryVerdict) {
  for (const std::string kind : {"self", "model"}) {  // all stands; some of it
    const RigOptions options{.length = 4, .capacity = 160};
    std::unique_ptr<Drafter> drafter = rig().drafter(kind, options);
    const auto& model = dynamic_cast<const ModelDrafter&>(*drafter);
    Engine engine = rig().engine(std::move(drafter), options);
    begin(engine, random_prompt(24, 12));
    std::array<int, 5> seen{};
    for (int done = 1; done < 120;) {
      const std::vector<TokenId> committed(engine.context().tokens().begin(), engine.context().tokens().end());
      const int count = checked_step(engine, 120 - done);
      done += count;
      ++seen[static_cast<std::size_t>(count - 1)];
      if (engine.last_tree().size() == 1) continue;
      const std::span<const TokenId> cached = model.cached();
      ASSERT_GE(cached.size(), committed.size());
      EXPECT_TRUE(std::equal(committed.begin(), committed.end(), cached.begin()));
      for (std::size_t i = committed.size(); i < cached.size(); ++i) {
        EXPECT_EQ(cached[i], engine.last_tree().token(static_cast<int>(i - committed.size()) + 1));
      }
      ASSERT_EQ(model.cache().size(), static_cast<int>(cached.size()));
    }
    EXPECT_GT(kind == "self" ? seen[4] : seen[0], 5);
    EXPECT_GT(kind == "self" ? seen[4] : seen[1] + seen[2] + seen[3], 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, DraftContext, ::testing::ValuesIn(backends()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Backends, SelfDraft, ::testing::ValuesIn(backends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::test
