// Predictions against real runs of the same settings, on tiny models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "draft/auto_length.h"
#include "tests/engine/replay_rig.h"

namespace tandem::test {
namespace {

using ReplayTest = ReplayRig;

std::vector<std::int64_t> counts(const DraftCounts& counts) { return {counts.tested, counts.accepted}; }

// What a prediction must have in common with a run; `proposed`: the drafts that were never tested too.
void expect_same_counts(const Metrics& replayed, const Metrics& real, bool proposed, const std::string& what) {
  EXPECT_EQ(replayed.steps, real.steps) << what;
  EXPECT_EQ(replayed.cut, real.cut) << what;
  EXPECT_EQ(replayed.generated, real.generated) << what;
  EXPECT_EQ(counts(replayed.total), counts(real.total)) << what;
  for (std::size_t i = 0; i < real.by_depth.size(); ++i) {
    EXPECT_EQ(counts(replayed.by_depth[i]), counts(real.by_depth[i])) << what << ", depth " << i + 1;
  }
  for (std::size_t i = 0; i < real.by_source.size(); ++i) {
    EXPECT_EQ(counts(replayed.by_source[i]), counts(real.by_source[i])) << what << ", source " << i;
  }
  if (!proposed) return;
  EXPECT_EQ(replayed.total.proposed, real.total.proposed) << what;
  EXPECT_EQ(replayed.steps_by_rows, real.steps_by_rows) << what;
}

std::string described(const ReplaySetting& s) {
  return s.kind + ", length " + (s.length ? std::to_string(*s.length) : "auto") + ", at least " +
         std::to_string(s.min_probability) + (s.head_rows ? ", head " + std::to_string(*s.head_rows) : "");
}

std::vector<std::string> settings_of(const ReplaySetting& s) {
  std::vector<std::string> settings{"draft.kind=" + s.kind,
                                    "draft.min_probability=" + std::to_string(s.min_probability)};
  if (s.length) settings.push_back("draft.length=" + std::to_string(*s.length));
  if (s.head_rows) settings.push_back("draft.head_rows=" + std::to_string(*s.head_rows));
  return settings;
}

TEST_F(ReplayTest, CountsAtTemperature0AreThoseOfARealRun) {
  const auto all = prompts(4);
  const Replayer replayer(record(session({}), all));
  std::int64_t rejected = 0, accepted = 0;
  for (const ReplaySetting& setting : replayer.combinations({.kinds = {"none", "ngram", "model", "hybrid"},
                                      .rules = {},
                                      .lengths = {1, 3, 8},
                                      .min_probabilities = {0, 0.4},
                                      .head_rows = {}})) {
    const Prediction prediction = replayer.predict(setting);
    const Session real = session(settings_of(setting));
    Engine engine = real.make_engine(real.configured_engine());
    for (std::size_t i = 0; i < all.size(); ++i) {
      // Where a repeat was wrong, how sure the model is behind it was not recorded.
      const bool proposed = setting.kind != "hybrid" || setting.min_probability == 0;
      const Metrics metrics = answer(real, engine, all[i]).metrics;
      expect_same_counts(prediction.answers[i].metrics, metrics, proposed, described(setting));
      accepted += metrics.total.accepted;
      rejected += metrics.total.tested - metrics.total.accepted;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(rejected, 100);
}

// Prompts and answers past window and ring, of target and draft.
TEST_F(ReplayTest, CountsAreExactForModelsWithSlidingWindows) {
  TinyOptions sliding = small_options();
  sliding.architecture = "gemma3";
  write_pair(sliding);
  std::vector<std::vector<TokenId>> all = prompts(3);
  for (std::vector<TokenId>& prompt : all) {
    const std::size_t period = prompt.size();
    while (prompt.size() < 130) prompt.push_back(prompt[prompt.size() % period]);
  }
  const Session recorded = session({});
  ASSERT_TRUE(recorded.engine().cache().layer(0).ring);
  ASSERT_LT(recorded.engine().cache().layer(0).capacity, 130);
  const Replayer replayer(record(recorded, all));
  for (const std::string kind : {"ngram", "model", "hybrid"}) {
    const Prediction prediction = replayer.predict({.kind = kind, .length = 5, .head_rows = {}});
    const Session real = session({"draft.kind=" + kind, "draft.length=5"});
    Engine engine = real.make_engine(real.configured_engine());
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect_same_counts(prediction.answers[i].metrics, answer(real, engine, all[i]).metrics, true, kind);
    }
  }
}

// Penalties and biases change the text and what is drafted; all of it is in the recording.
TEST_F(ReplayTest, CountsAreExactUnderPenaltiesToo) {
  const auto all = prompts(3);
  const std::vector<std::string> chain{"sampling.repetition_penalty=1.3", "sampling.presence_penalty=0.2",
                                       "sampling.logit_bias={40: 2, 41: -.inf}"};
  const Replayer replayer(record(session(chain), all));
  const Prediction prediction = replayer.predict({.kind = "model", .length = 4, .head_rows = {}});
  std::vector<std::string> fixed = chain;
  fixed.insert(fixed.end(), {"draft.kind=model", "draft.length=4"});
  const Session real = session(fixed);
  Engine engine = real.make_engine(real.configured_engine());
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect_same_counts(prediction.answers[i].metrics, answer(real, engine, all[i]).metrics, true, "penalties");
  }
}

// A run that stops drafts beyond the stop, which the recording reaches too.
TEST_F(ReplayTest, CountsAreExactWhereAnswersStop) {
  const auto all = prompts(6);
  const Recording whole = record(session({}), all);
  const TokenId end = whole.answers[0].tokens[static_cast<std::size_t>(whole.answers[0].prompt) + 9];
  const std::string stop = "stop.token_ids=[" + std::to_string(end) + "]";
  const Replayer replayer(record(session({stop}), all));
  std::int64_t cut = 0;
  for (const std::string kind : {"ngram", "model", "hybrid"}) {
    const Prediction prediction = replayer.predict({.kind = kind, .length = 5, .head_rows = {}});
    const Session real = session({stop, "draft.kind=" + kind, "draft.length=5"});
    Engine engine = real.make_engine(real.configured_engine());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Metrics metrics = answer(real, engine, all[i]).metrics;
      expect_same_counts(prediction.answers[i].metrics, metrics, true, kind);
      cut += metrics.cut;
    }
  }
  EXPECT_GT(cut, 0);
}

// With the costs of the recording and no clock, automatic lengths decide as in a run, as far as they were asked about
// what was recorded: behind a wrong second-best token, which a tree may hold, the text itself stands in, and drafts are
// not tried on the prompt, whose rows are not recorded.
class Untried final : public LengthPolicy {
 public:
  explicit Untried(const CostModel& costs) : policy_(costs, 16, 0, false) {}
  void begin_step(const DraftBudget& budget) override { policy_.begin_step(budget); }
  bool allow_draft_step(const DraftQuestion& question) override { return policy_.allow_draft_step(question); }
  bool allow_row(const DraftQuestion& question) override { return policy_.allow_row(question); }
  bool prefers(const DraftQuestion& known, const DraftQuestion& step) override { return policy_.prefers(known, step); }
  void observe(const TokenTree& tree, const Verdict& verdict) override { policy_.observe(tree, verdict); }
  std::string_view name() const override { return policy_.name(); }

 private:
  AutoLength policy_;
};

TEST_F(ReplayTest, AutomaticLengthsDecideAsInARun) {
  const std::vector<RowSeconds> target_costs{{1, 1}, {6, 1.2}, {8, 1.4}, {16, 2.1}}, draft_costs{{1, 0.1}, {64, 1.5}};
  const auto all = prompts(8);
  const Session real = session({});
  Recording recording = record(real, all);
  recording.settings.refresh_costs = false;
  recording.settings.target_costs = target_costs;
  recording.settings.draft_costs = draft_costs;
  const Replayer replayer(std::move(recording));
  const EngineChoice configured = real.configured_engine();
  for (const std::string kind : {"model", "ngram"}) {
    const Prediction prediction = replayer.predict({.kind = kind, .length = {}, .head_rows = {}});
    DrafterSetup setup;
    setup.kind = kind;
    setup.sampling = configured.sampling;
    setup.model = configured.draft;
    setup.context = configured.context;
    setup.kv_type = real.draft_kv_type();
    setup.mask = usable_tokens(real.target(), real.draft());
    setup.min_match = 1;
    const CostModel costs{PassCosts(target_costs), PassCosts(draft_costs)};
    Metrics total;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Engine engine({.target = configured.target,
                     .cache = configured.target->make_cache(configured.context, real.target_kv_type()),
                     .drafter = make_drafter(setup),
                     .policy = std::make_unique<Untried>(costs),
                     .verifier = make_verifier("rejection"),
                     .sampler = Sampler(configured.sampling, {}, usable_tokens(real.target())),
                     .prefill_chunk = 16});
      const Metrics metrics = answer(real, engine, all[i]).metrics;
      total.add(metrics);
      if (kind == "ngram") expect_same_counts(prediction.answers[i].metrics, metrics, true, kind);
    }
    const auto steps = static_cast<double>(total.steps), accepted = static_cast<double>(total.total.accepted);
    EXPECT_GT(accepted, 20) << kind;
    EXPECT_NEAR(static_cast<double>(prediction.total.metrics.steps), steps, 0.05 * steps) << kind;
    EXPECT_NEAR(static_cast<double>(prediction.total.metrics.total.accepted), accepted, 0.1 * accepted) << kind;
  }
}

// On the reference: rows that a text adds to a trimmed head are computed in F32 everywhere, which elsewhere differs
// from the head's own in the last bits.
TEST_F(ReplayTest, HeadsOfOtherSizesDraftAsTheyWould) {
  const auto all = prompts(4);
  const Replayer replayer(record(session({}, true), all));
  const Prediction full = replayer.predict({.kind = "model", .length = 4, .head_rows = {}});
  for (const int rows : {20, 60}) {
    const ReplaySetting setting{.kind = "model", .length = 4, .head_rows = rows};
    const Prediction prediction = replayer.predict(setting);
    EXPECT_NE(prediction.total.metrics.total.accepted, full.total.metrics.total.accepted);
    EXPECT_LT(prediction.total.draft_seconds / static_cast<double>(prediction.total.metrics.total.proposed),
              full.total.draft_seconds / static_cast<double>(full.total.metrics.total.proposed));
    const Session real = session(settings_of(setting), true);
    Engine engine = real.make_engine(real.configured_engine());
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect_same_counts(prediction.answers[i].metrics, answer(real, engine, all[i]).metrics, true, described(setting));
    }
  }
}

class HotReplayTest : public ReplayRig {
 protected:
  static std::vector<std::string> hot(const std::string& rule) {
    return {"sampling.temperature=0.8", "sampling.top_k=40", "verify.rule=" + rule, "stop.max_tokens=24"};
  }
};

TEST_F(HotReplayTest, CoupledCountsAreThoseOfTheSeed) {
  const auto all = prompts(6);
  const Replayer replayer(record(session(hot("coupled")), all));
  for (const std::string kind : {"model", "ngram", "hybrid"}) {
    const Prediction prediction = replayer.predict({.kind = kind, .length = 4, .rule = "coupled", .head_rows = {}});
    std::vector<std::string> fixed = hot("coupled");
    fixed.insert(fixed.end(), {"draft.kind=" + kind, "draft.length=4"});
    const Session real = session(fixed);
    Engine engine = real.make_engine(real.configured_engine());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Metrics metrics = answer(real, engine, all[i]).metrics;
      for (int repeat = 0; repeat < 8; ++repeat) EXPECT_EQ(prediction.answers[i].metrics.steps, 8 * metrics.steps);
      EXPECT_EQ(prediction.answers[i].metrics.total.accepted, 8 * metrics.total.accepted) << kind;
    }
  }
}

// Steps of a real run and of its replay differ by chance alone, so their mean difference over many seeds and prompts
// is within a few standard errors of 0; a rate of acceptance that is off by a tenth would not be.
TEST_F(HotReplayTest, StepsOfSampledDraftsComeAsOften) {
  constexpr int kSeeds = 32;
  const auto all = prompts(8);
  for (const std::string rule : {"rejection", "block"}) {
    std::vector<double> differences;
    double steps = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      std::vector<std::string> settings = hot(rule);
      settings.push_back("sampling.seed=" + std::to_string(100 + seed));
      const Replayer replayer(record(session(settings), all), {}, 4);
      const Prediction prediction = replayer.predict({.kind = "hybrid", .length = 4, .rule = rule, .head_rows = {}});
      settings.push_back("draft.length=4");
      const Session real = session(settings);
      Engine engine = real.make_engine(real.configured_engine());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto real_steps = static_cast<double>(answer(real, engine, all[i]).metrics.steps);
        differences.push_back(static_cast<double>(prediction.answers[i].metrics.steps) / 4 - real_steps);
        steps += real_steps;
      }
    }
    double sum = 0, squares = 0;
    for (const double d : differences) {
      sum += d;
      squares += d * d;
    }
    const auto n = static_cast<double>(differences.size());
    const double error = std::sqrt(squares / n / n);
    EXPECT_LT(std::abs(sum / n), 3.5 * error) << rule;
    EXPECT_LT(3.5 * error, 0.1 * steps / n) << rule << ": too few runs to find a fault of a tenth";
  }
}

TEST_F(HotReplayTest, BlockNeverAcceptsLessThanRejection) {
  const Replayer replayer(record(session(hot("rejection")), prompts(6)));
  const auto steps = [&](const std::string& rule) {
    return replayer.predict({.kind = "model", .length = 6, .rule = rule, .head_rows = {}}).total.metrics.steps;
  };
  EXPECT_LT(steps("block"), steps("rejection"));
}

}  // namespace
}  // namespace tandem::test
