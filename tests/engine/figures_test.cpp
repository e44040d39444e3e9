// What the figures of an answer promise: times by a clock that only the test moves, and counts that add up whatever
// drafts, decides and stops.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "draft/none.h"
#include "src/engine/generation.h"
#include "tests/engine/engine_rig.h"
#include "tests/model/wrapped_model.h"

namespace tandem::test {
namespace {

// Times that add up without rounding.
constexpr double kDraft = 1.0 / 8, kPass = 1.0 / 4, kRow = 1.0 / 64, kSample = 1.0 / 32, kText = 1.0 / 2;

// Stands still but for what is said to take time; with `tick`, also by that much at each reading.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(double tick = 0) : tick_(tick) {}
  double seconds() const override {
    const double now = now_;
    now_ += tick_;
    return now;
  }
  void pass(double seconds) const { now_ += seconds; }

 private:
  double tick_;
  mutable double now_ = 1000;
};

// A model whose passes take kPass and kRow a row.
class TimedModel final : public WrappedModel {
 public:
  TimedModel(LanguageModel& model, const FakeClock& clock) : WrappedModel(model), clock_(clock) {}
  Logits forward(const Batch& batch, KvCache& cache) override {
    clock_.pass(kPass + kRow * static_cast<double>(batch.tokens.size()));
    return WrappedModel::forward(batch, cache);
  }

 private:
  const FakeClock& clock_;
};

class TimedVerifier final : public Verifier {
 public:
  TimedVerifier(std::string_view rule, const FakeClock& clock) : rule_(make_verifier(rule)), clock_(clock) {}
  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    clock_.pass(kSample);
    return rule_->verify(tree, logits, sampler, context);
  }
  std::string_view name() const override { return rule_->name(); }
  bool lossless() const override { return rule_->lossless(); }

 private:
  std::unique_ptr<Verifier> rule_;
  const FakeClock& clock_;
};

double stages(const GenerationResult& r) {
  const StageSeconds& s = r.metrics.seconds;
  return s.prefill + s.draft + s.verify + s.sample + s.rollback;
}

class Times : public ::testing::Test {
 protected:
  // Drafts of `length` tokens that are always right, each proposal in kDraft.
  GenerationResult answer(const FakeClock& clock, int prompt_tokens, int tokens, int length, int chunk,
                          double between_steps = 0) {
    const std::vector<TokenId> prompt = random_prompt(7, prompt_tokens);
    const RigOptions options{.length = length, .capacity = prompt_tokens + tokens + kMaxTreeNodes};
    TimedModel model(target_.model, clock);
    const std::vector<TokenId> truth = plain(prompt, tokens, options);
    Engine engine({.target = &model,
                   .cache = model.make_cache(options.capacity, target_.backend->preferred_kv_type()),
                   .drafter = oracle(truth, [&clock] { clock.pass(kDraft); }),
                   .policy = Rig::policy(options),
                   .verifier = std::make_unique<TimedVerifier>("rejection", clock),
                   .sampler = Sampler(greedy_sampling(), {1, 0}, {}),
                   .prefill_chunk = chunk,
                   .clock = &clock});
    Generation generation(engine, *tokenizer_, prompt, {.max_tokens = tokens});
    while (generation.advance()) clock.pass(between_steps);
    return generation.result();
  }

  std::vector<TokenId> plain(const std::vector<TokenId>& prompt, int tokens, const RigOptions& options) {
    Engine engine({.target = &target_.model,
                   .cache = target_.model.make_cache(options.capacity, target_.backend->preferred_kv_type()),
                   .drafter = std::make_unique<NoneDrafter>(),
                   .policy = Rig::policy({.length = 0}),
                   .verifier = make_verifier("rejection"),
                   .sampler = Sampler(greedy_sampling(), {1, 0}, {}),
                   .prefill_chunk = 256});
    return run(engine, prompt, tokens);
  }

  TinyModel target_{[] {
                      TinyOptions options;
                      options.width = options.ffn = 32;
                      options.heads = 2;
                      options.kv_heads = 1;
                      options.context = 2400;
                      options.tied = false;
                      return options;
                    }(),
                    "reference", 1, 256};
  std::unique_ptr<Tokenizer> tokenizer_ = make_tokenizer(tiny_vocabulary(), "tiny");
};

TEST_F(Times, EveryStageIsWhatItTookAndNothingIsLeftOver) {
  const FakeClock clock;
  constexpr int kPrompt = 10, kChunk = 4, kLength = 4, kSteps = 20;
  const GenerationResult r = answer(clock, kPrompt, 1 + kSteps * (kLength + 1), kLength, kChunk);
  ASSERT_EQ(r.metrics.steps, kSteps);
  ASSERT_EQ(r.ids.size(), 1u + kSteps * (kLength + 1));
  EXPECT_EQ(r.metrics.seconds.prefill, 3 * kPass + kPrompt * kRow);
  EXPECT_EQ(r.metrics.seconds.draft, kSteps * kDraft);
  EXPECT_EQ(r.metrics.seconds.verify, kSteps * (kPass + (kLength + 1) * kRow));
  EXPECT_EQ(r.metrics.seconds.sample, (kSteps + 1) * kSample);  // and the first token's
  EXPECT_EQ(r.metrics.seconds.rollback, 0);
  EXPECT_EQ(r.wall_seconds, stages(r));
  EXPECT_EQ(r.metrics.steps_by_rows[kLength + 1], kSteps);
  EXPECT_EQ(r.metrics.seconds_by_rows[kLength + 1], r.metrics.seconds.verify);
}

TEST_F(Times, RatesCountTokensAndNotSteps) {  // B43
  const FakeClock clock;
  const GenerationResult r = answer(clock, 10, 101, 4, 256);
  const double step = kDraft + kPass + 5 * kRow + kSample;
  EXPECT_EQ(*r.ttft_seconds, kPass + 10 * kRow + kSample);  // the first token's draw, but no step
  EXPECT_DOUBLE_EQ(*r.tpot_seconds, step / 5);
  EXPECT_DOUBLE_EQ(*r.decode_tokens_per_second, 5 / step);
}

TEST_F(Times, PromptOfManyChunksIsTimedWhole) {  // B44
  const FakeClock clock;
  const GenerationResult r = answer(clock, 2000, 2, 0, 256);
  EXPECT_EQ(r.metrics.seconds.prefill, 8 * kPass + 2000 * kRow);
  EXPECT_EQ(*r.ttft_seconds, r.metrics.seconds.prefill + kSample);
}

TEST_F(Times, WhatTheReaderTakesIsOther) {
  const FakeClock clock;
  const GenerationResult r = answer(clock, 10, 11, 4, 256, kText);
  ASSERT_EQ(r.metrics.steps, 2);
  EXPECT_EQ(r.wall_seconds - stages(r), 2 * kText);  // after the first token and after the first of two steps
  EXPECT_EQ(*r.tpot_seconds, (r.wall_seconds - *r.ttft_seconds) / 10);
}

// A clock that moves by one at each reading counts readings: one a timed stage, and whatever lies between two.
TEST_F(Times, EveryStageOfAStepIsTimedOnce) {
  const FakeClock clock(1);
  const GenerationResult r = answer(clock, 10, 11, 4, 256);
  ASSERT_EQ(r.metrics.steps, 2);
  EXPECT_EQ(r.metrics.seconds.rollback, 2);
  EXPECT_EQ(r.metrics.seconds.sample, 3 + 3 * kSample);
  EXPECT_EQ(r.metrics.seconds.verify, 2 + 2 * (kPass + 5 * kRow));
  EXPECT_EQ(r.metrics.seconds.draft, 2 * 2 + 2 * kDraft);  // proposing, and learning from the verdict
}

TEST_F(Times, TimeLimitIsReadFromTheSameClock) {
  const FakeClock clock;
  const std::vector<TokenId> prompt = random_prompt(7, 10);
  TimedModel model(target_.model, clock);
  Engine engine({.target = &model,
                 .cache = model.make_cache(200, target_.backend->preferred_kv_type()),
                 .drafter = std::make_unique<NoneDrafter>(),
                 .policy = Rig::policy({.length = 0}),
                 .verifier = make_verifier("rejection"),
                 .sampler = Sampler(greedy_sampling(), {1, 0}, {}),
                 .prefill_chunk = 256,
                 .clock = &clock});
  const double prefill = kPass + 10 * kRow, step = kPass + kRow;
  Generation generation(engine, *tokenizer_, prompt, {.max_tokens = 100, .time_limit_seconds = prefill + 5 * step});
  while (generation.advance()) continue;
  EXPECT_EQ(generation.result().stop_reason, StopReason::time);
  EXPECT_EQ(generation.result().metrics.steps, 5);
}

// Each node of a tree by itself, from the verdict: what the sums of an answer are compared with.
struct Recount {
  DraftCounts total;
  std::array<DraftCounts, kMaxTreeNodes> by_depth{};
  std::int64_t steps = 0;

  void add(const TokenTree& tree, const Verdict& verdict) {
    ++steps;
    for (int node = 1; node < tree.size(); ++node) {
      const std::span<const int> path = verdict.path();
      const bool kept = std::find(path.begin(), path.end(), node) != path.end();
      const bool tested = (verdict.tested >> node & 1) != 0;
      EXPECT_TRUE(tested || !kept) << "node " << node << " was accepted untested";
      for (DraftCounts* counts : {&total, &by_depth[static_cast<std::size_t>(tree.depth(node)) - 1]}) {
        ++counts->proposed;
        if (kept) ++counts->accepted;
        ++(tested ? counts->tested : counts->untested);
        if (tested && !kept) ++counts->rejected;
      }
    }
  }
};

void expect_adds_up(const DraftCounts& c) {
  EXPECT_EQ(c.proposed, c.tested + c.untested);
  EXPECT_EQ(c.tested, c.accepted + c.rejected);
}

void expect_equal(const DraftCounts& a, const DraftCounts& b) {
  EXPECT_EQ(a.proposed, b.proposed);
  EXPECT_EQ(a.tested, b.tested);
  EXPECT_EQ(a.accepted, b.accepted);
  EXPECT_EQ(a.rejected, b.rejected);
  EXPECT_EQ(a.untested, b.untested);
}

void expect_true_counts(const GenerationResult& r, const Recount& recount) {
  const Metrics& m = r.metrics;
  EXPECT_EQ(m.generated, static_cast<std::int64_t>(r.ids.size()));
  EXPECT_EQ(m.generated, 1 + m.total.accepted + m.steps - m.cut);
  EXPECT_EQ(m.steps, recount.steps);
  expect_adds_up(m.total);
  expect_equal(m.total, recount.total);
  DraftCounts depths, sources;
  for (std::size_t i = 0; i < m.by_depth.size(); ++i) {
    expect_adds_up(m.by_depth[i]);
    expect_equal(m.by_depth[i], recount.by_depth[i]);
    depths.add(m.by_depth[i]);
  }
  for (const DraftCounts& source : m.by_source) {
    expect_adds_up(source);
    sources.add(source);
  }
  expect_equal(depths, m.total);
  expect_equal(sources, m.total);
  EXPECT_EQ(m.by_source[static_cast<int>(DraftSource::none)].proposed, 0);
}

class Counts : public ::testing::TestWithParam<const char*> {};  // the rule

TEST_P(Counts, AddUpForEveryDrafterTemperatureAndStop) {
  Rig& rig = Rig::shared("cpu");
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tiny_vocabulary(), "tiny");
  std::int64_t cut = 0, rejected = 0, untested = 0;
  for (const double temperature : {0.0, 1.0}) {
    for (const bool stops : {false, true}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        RigOptions options{.length = seed % 2 == 0 ? kAuto : 6, .seed = seed};
        options.rule = GetParam();
        options.sampling.temperature = temperature;
        std::vector<TokenId> prompt = random_prompt(seed, 6);
        for (int i = 0; i < 12; ++i) prompt.push_back(prompt[static_cast<std::size_t>(i)]);
        const std::vector<TokenId> truth = rig.plain(prompt, 40, options);
        StopRules rules{.max_tokens = 40};
        if (stops) rules.strings = {"he", "q", "Z", "a", "3"};
        for (const std::string& kind : Rig::kinds()) {
          SCOPED_TRACE(kind + " at temperature " + std::to_string(temperature));
          Engine engine = rig.engine(rig.any_drafter(kind, truth, options), options);
          Generation generation(engine, *tokenizer, prompt, rules);
          Recount recount;
          for (bool more = true; more;) {
            const std::int64_t before = engine.metrics().steps;
            more = generation.advance();
            if (engine.metrics().steps > before) recount.add(engine.last_tree(), engine.last_verdict());
          }
          expect_true_counts(generation.result(), recount);
          cut += generation.result().metrics.cut;
          rejected += recount.total.rejected;
          untested += recount.total.untested;
        }
      }
    }
  }
  EXPECT_GT(cut, 0);
  EXPECT_GT(rejected, 0);
  EXPECT_GT(untested, 0);
}

INSTANTIATE_TEST_SUITE_P(Rules, Counts, ::testing::Values("rejection", "block", "coupled", "typical"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tandem::test
