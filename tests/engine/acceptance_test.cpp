// The counts behind `tandem accept`: places and bins by hand, expected acceptance against dense sums and against what
// the rules do, on tiny models.
#include "src/engine/acceptance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/engine/acceptance_report.h"
#include "tests/engine/engine_rig.h"
#include "tests/engine/mutant_rules.h"
#include "tests/engine/session_models.h"

namespace tandem::test {
namespace {

// Answers on the rig's models with notes taken.
class Steps : public ::testing::Test {
 protected:
  AcceptanceCounts counts(std::unique_ptr<Drafter> drafter, const std::vector<TokenId>& prompt, int tokens,
                          const RigOptions& options, std::unique_ptr<Verifier> verifier = nullptr) {
    StepNotes notes;
    Engine engine({.target = &rig_.target(),
                   .cache = rig_.target().make_cache(options.capacity, rig_.kv_type()),
                   .drafter = std::move(drafter),
                   .policy = std::make_unique<NotingPolicy>(Rig::policy(options), notes),
                   .verifier = verifier ? std::move(verifier) : make_verifier(options.rule),
                   .sampler = Sampler(options.sampling, {options.seed, 0}, options.mask),
                   .prefill_chunk = 64});
    begin(engine, prompt);
    AcceptanceCounts counts;
    for (int done = 1; done < tokens;) {
      Context before = engine.context();
      done += checked_step(engine, tokens - done);
      const std::vector<TokenId> held(before.tokens().begin(), before.tokens().end());
      count_step(engine, before, notes, counts);
      EXPECT_EQ(held, std::vector<TokenId>(before.tokens().begin(), before.tokens().end()));
      seen(engine, held);
    }
    counts.metrics = engine.metrics();
    counts.answers = 1;
    return counts;
  }
  // For tests that count a second time.
  virtual void seen(Engine&, const std::vector<TokenId>&) {}

  Rig& rig_ = Rig::shared("cpu");
};

TEST_F(Steps, PlacesAreCountedByHand) {
  const std::vector<TokenId> prompt = random_prompt(7, 8);
  const RigOptions options{.length = 4};
  const std::vector<TokenId> truth = rig_.plain(prompt, 22, options);
  // Steps of three tokens: two drafts stand, the third does not, the fourth is not tested.
  const AcceptanceCounts c = counts(wrong_after(2, truth), prompt, 22, options);
  ASSERT_EQ(c.metrics.steps, 7);
  for (const auto& [position, room, drafted, tested, accepted] :
       {std::array{1, 7, 7, 7, 7}, {2, 7, 7, 7, 7}, {3, 6, 6, 6, 0}, {4, 6, 6, 0, 0}, {5, 6, 0, 0, 0}}) {
    const PositionCounts& place = c.positions[static_cast<std::size_t>(position) - 1];
    EXPECT_EQ(place.room, room) << position;
    EXPECT_EQ(place.drafted, drafted) << position;
    EXPECT_EQ(place.tested, tested) << position;
    EXPECT_EQ(place.accepted, accepted) << position;
    EXPECT_EQ(place.passes, 0) << position;
  }
  for (const auto& [length, rows, steps] :
       {std::array{0, 1, 7}, {1, 2, 7}, {2, 3, 7}, {3, 4, 6}, {4, 5, 6}, {9, 5, 4}}) {
    EXPECT_EQ(c.steps_by_length_and_rows[static_cast<std::size_t>(length)][static_cast<std::size_t>(rows)], steps);
  }
  const BinCounts& sure = c.bins[static_cast<int>(DraftSource::other)][kConfidenceBins - 1];
  EXPECT_EQ(sure.tested, c.metrics.total.tested);
  EXPECT_EQ(sure.accepted, c.metrics.total.accepted);
  EXPECT_EQ(sure.confidence, static_cast<double>(sure.tested));
}

TEST_F(Steps, SiblingsShareAPlace) {
  const std::vector<TokenId> prompt = random_prompt(8, 8);
  const RigOptions options{.length = 6};
  const std::vector<TokenId> truth = rig_.plain(prompt, 30, options);
  const AcceptanceCounts c = counts(std::make_unique<DuplicateSiblings>(truth), prompt, 30, options);
  std::int64_t accepted = 0;
  for (const PositionCounts& place : c.positions) {
    EXPECT_LE(place.drafted, place.room);
    EXPECT_LE(place.tested, place.drafted);
    EXPECT_LE(place.accepted, place.tested);
    accepted += place.accepted;
  }
  EXPECT_EQ(accepted, c.metrics.total.accepted);
  EXPECT_EQ(c.positions[0].tested, c.metrics.steps - (c.positions[0].room < c.metrics.steps ? 1 : 0));
  EXPECT_GT(c.metrics.total.tested, c.compared);
}

TEST(Bins, BordersBelongToTheBinAbove) {
  EXPECT_EQ(confidence_bin(0), 0);
  EXPECT_EQ(confidence_bin(0.29), 0);
  EXPECT_EQ(confidence_bin(0.3), 1);
  EXPECT_EQ(confidence_bin(0.99), kConfidenceBins - 1);
  EXPECT_EQ(confidence_bin(1), kConfidenceBins - 1);
}

TEST_F(Steps, ModelDraftsArePassesAndTheirConfidenceIsWhatThePolicySaw) {
  const std::vector<TokenId> prompt = random_prompt(9, 8);
  const RigOptions options{.length = 3};
  const AcceptanceCounts c = counts(rig_.drafter("model", options), prompt, 40, options);
  std::int64_t tested = 0;
  double confidence = 0;
  for (const BinCounts& bin : c.bins[static_cast<int>(DraftSource::model)]) {
    tested += bin.tested;
    confidence += bin.confidence;
  }
  EXPECT_EQ(tested, c.metrics.total.tested);
  EXPECT_LT(confidence, 0.99 * static_cast<double>(tested));  // greedy: the draft's own, not that of a one-hot draw
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(c.positions[i].passes, c.positions[i].drafted);
  EXPECT_EQ(c.positions[3].drafted, 0);
  ASSERT_FALSE(c.catch_up.empty());
  EXPECT_EQ(c.catch_up.rbegin()->first, 9);  // the prompt and the first token, read at once
  EXPECT_EQ(c.catch_up.rbegin()->second, 1);
  EXPECT_EQ(c.catch_up.begin()->first, 2);  // after a proposal that stood whole
}

// At temperature 0 both distributions are one-hot, so that nothing is left to chance.
TEST_F(Steps, GreedyAcceptanceIsExpectedExactly) {
  for (const std::string& kind : Rig::kinds()) {
    SCOPED_TRACE(kind);
    const std::vector<TokenId> prompt = random_prompt(10, 12);
    const RigOptions options{.length = 5};
    const std::vector<TokenId> truth = rig_.plain(prompt, 40, options);
    const AcceptanceCounts c = counts(rig_.any_drafter(kind, truth, options), prompt, 40, options);
    for (const ExpectedCounts& e : {c.sampled, c.deterministic}) {
      EXPECT_EQ(e.expected, static_cast<double>(e.accepted));
      EXPECT_EQ(e.variance, 0);
    }
    EXPECT_EQ(c.sampled.tested + c.deterministic.tested, c.metrics.total.tested);
    EXPECT_EQ(c.sampled.accepted + c.deterministic.accepted, c.metrics.total.accepted);
    if (kind == "model" || kind == "ngram" || kind == "oracle") {
      EXPECT_EQ(c.same_top, c.metrics.total.accepted);
    }
  }
}

// Drafts of one token, whose sum min(p, q) is taken once more over all of the vocabulary.
class DenseOverlap : public Steps {
 protected:
  void seen(Engine& engine, const std::vector<TokenId>& held) override {
    if (engine.last_tree().size() < 2) return;
    Context context;
    context.push(held);
    Distribution p;
    engine.sampler().distribution(engine.last_logits().row(0), context, p);
    const Distribution& q = *engine.last_tree().proposal(0);
    TokenId best_p = 0, best_q = 0;
    for (TokenId token = 0; token < 112; ++token) {
      dense_ += std::min(p[token], q[token]);
      if (p[token] > p[best_p]) best_p = token;
      if (q[token] > q[best_q]) best_q = token;
    }
    ++steps_;
    same_top_ += best_p == best_q;
  }
  double dense_ = 0;
  std::int64_t steps_ = 0, same_top_ = 0;
};

TEST_F(DenseOverlap, IsTheSumOfMinima) {
  RigOptions options{.length = 1};
  options.sampling = {.temperature = 0.8, .top_k = 20, .top_p = 0.9};
  options.sampling.presence_penalty = 0.3;
  const AcceptanceCounts c = counts(rig_.drafter("model", options), random_prompt(11, 10), 80, options);
  ASSERT_EQ(c.sampled.tested, steps_);
  EXPECT_GT(steps_, 20);
  EXPECT_NEAR(c.sampled.expected, dense_, 1e-9);
  EXPECT_EQ(c.same_top, same_top_);
  EXPECT_GT(same_top_, 0);
  EXPECT_LT(same_top_, steps_);
}

// Accepted drafts less the expected ones are a martingale, so that their sum over many answers is within a few of its
// standard errors: 4.5 of them are exceeded once in 150,000 true runs.
class Expected : public Steps {
 protected:
  static constexpr double kErrors = 4.5;

  AcceptanceCounts many(const std::string& kind, RigOptions options, std::optional<Mistake> mistake = {}) {
    AcceptanceCounts sum;
    for (std::uint64_t seed = 1; seed <= 24; ++seed) {
      options.seed = seed;
      const std::vector<TokenId> prompt = random_prompt(seed, 10);
      const std::vector<TokenId> truth = rig_.plain(prompt, 60, options);
      sum.add(counts(rig_.any_drafter(kind, truth, options), prompt, 60, options,
                     mistake ? std::make_unique<MutantRule>(*mistake) : nullptr));
    }
    return sum;
  }
  static double errors(const ExpectedCounts& c) {
    return (static_cast<double>(c.accepted) - c.expected) / std::sqrt(c.variance);
  }
};

TEST_F(Expected, IsWhatRejectionAcceptsOfDrawnDraftsAndOfTrees) {
  for (const double temperature : {0.7, 1.5}) {
    RigOptions options{.length = 4};
    options.sampling = {.temperature = temperature, .top_k = 0, .top_p = 0.95};
    const AcceptanceCounts drawn = many("model", options);
    EXPECT_GT(drawn.sampled.tested, 800);
    EXPECT_LT(std::abs(errors(drawn.sampled)), kErrors);
    for (const std::string kind : {"random-tree", "duplicates"}) {
      const AcceptanceCounts c = many(kind, options);
      EXPECT_GT(c.deterministic.tested, 100) << kind;
      EXPECT_LT(std::abs(errors(c.deterministic)), kErrors) << kind;
    }
    const AcceptanceCounts both = many("hybrid", options);
    EXPECT_GT(both.deterministic.tested, 0);
    EXPECT_LT(std::abs(errors(both.sampled)), kErrors);
  }
}

TEST_F(Expected, FindsRulesThatAcceptOtherwise) {
  RigOptions options{.length = 4};
  options.sampling = {.temperature = 1.5, .top_k = 0, .top_p = 1};
  EXPECT_GT(errors(many("model", options, Mistake::accepts_all).sampled), kErrors);
  EXPECT_LT(std::abs(errors(many("model", options, Mistake::corrects_from_q).sampled)),
            kErrors);  // accepts as it should
}

TEST(Acceptance, SumsAreThoseOfTheParts) {
  AcceptanceCounts one;
  one.metrics.steps = 3;
  one.answers = 1;
  one.positions[2] = {5, 4, 3, 2, 1};
  one.bins[1][4] = {3, 2, 1.5};
  one.sampled = {4, 3, 2.5, 0.75};
  one.deterministic = {2, 1, 0.5, 0.25};
  one.compared = 6;
  one.same_top = 5;
  one.catch_up = {{2, 3}, {90, 1}};
  one.steps_by_length_and_rows[3][4] = 7;
  AcceptanceCounts two = one;
  two.add(one);
  EXPECT_EQ(two.metrics.steps, 6);
  EXPECT_EQ(two.answers, 2);
  const PositionCounts& place = two.positions[2];
  EXPECT_EQ((std::array{place.room, place.drafted, place.tested, place.accepted, place.passes}),
            (std::array<std::int64_t, 5>{10, 8, 6, 4, 2}));
  EXPECT_EQ(two.bins[1][4].tested, 6);
  EXPECT_EQ(two.bins[1][4].accepted, 4);
  EXPECT_EQ(two.bins[1][4].confidence, 3);
  EXPECT_EQ(two.sampled.tested, 8);
  EXPECT_EQ(two.sampled.accepted, 6);
  EXPECT_EQ(two.sampled.expected, 5);
  EXPECT_EQ(two.sampled.variance, 1.5);
  EXPECT_EQ(two.deterministic.expected, 1);
  EXPECT_EQ(two.catch_up, (std::map<int, std::int64_t>{{2, 6}, {90, 2}}));
  EXPECT_EQ(two.compared, 12);
  EXPECT_EQ(two.same_top, 10);
  EXPECT_EQ(two.steps_by_length_and_rows[3][4], 14);
}

class Measured : public ::testing::Test, protected SessionModels {
 protected:
  Measured() { write_pair(); }

  std::unique_ptr<Session> session(const std::string& length) {
    Options options =
        Options::from_text("target: {context: 128}\nsampling: {temperature: 0.9, seed: 5}\n", "test.yaml");
    options.set("target.model=" + target_);
    options.set("draft.model=" + draft_);
    options.set("draft.kind=model");
    options.set("draft.length=" + length);
    options.set("runtime.threads=1");
    return std::make_unique<Session>(read_config(std::move(options)));
  }
};

TEST_F(Measured, AnswersAreThoseOfGenerateAndTheCountsTheirs) {
  for (const std::string length : {"4", "auto"}) {
    const std::unique_ptr<Session> own = session(length);
    const std::vector<TokenId> prompt = own->encode_raw("the hat in the inn");
    StopRules rules;
    rules.max_tokens = 60;
    Generation generation(own->engine(), own->tokenizer(), prompt, rules);
    while (generation.advance()) continue;
    const MeasuredAnswer measured = measure_acceptance(*own, own->configured_engine(), prompt, rules);
    EXPECT_EQ(measured.result.ids, generation.result().ids) << length;
    EXPECT_EQ(measured.counts.metrics.total.accepted, generation.result().metrics.total.accepted) << length;
    EXPECT_EQ(measured.counts.metrics.steps, generation.result().metrics.steps) << length;
    EXPECT_EQ(measured.counts.answers, 1);
    EXPECT_EQ(measured.warning, "");
    std::int64_t steps = 0;
    for (const std::int64_t count : measured.counts.steps_by_length_and_rows[0]) steps += count;
    EXPECT_EQ(steps, measured.counts.metrics.steps);
  }
}

TEST_F(Measured, FullContextIsStillTheReasonToStopAndADraftsWarningIsHandedOn) {
  const std::unique_ptr<Session> own = session("4");
  const std::vector<TokenId> prompt(120, 7);
  StopRules rules;
  rules.max_tokens = 1000000000;
  EXPECT_EQ(measure_acceptance(*own, own->configured_engine(), prompt, rules).result.stop_reason, StopReason::context);
}

TEST_F(Measured, CostsOfPassesAreThereForAFixedLengthToo) {
  const std::unique_ptr<Session> fixed = session("4");
  EXPECT_FALSE(fixed->costs());
  const CostTable costs = fixed->pass_costs();
  EXPECT_FALSE(costs.target.empty());
  EXPECT_FALSE(costs.draft.empty());
  EXPECT_TRUE(fixed->pass_costs().saved);
}

TEST(Report, TasksKeepTheirOrderAndAddUpToAll) {
  AcceptanceCounts answer;
  answer.answers = 1;
  answer.metrics.steps = 10;
  answer.metrics.generated = 19;
  answer.metrics.total = {.proposed = 20, .tested = 12, .accepted = 8, .rejected = 4, .untested = 8};
  TemperatureAcceptance found;
  found.temperature = 0.5;
  for (const char* task : {"code", "chat", "code"}) found.add(task, answer);
  const nlohmann::ordered_json json = to_json(found, {});
  EXPECT_EQ(json["all"]["answers"], 3);
  EXPECT_EQ(json["all"]["accepted"], 24);
  ASSERT_EQ(json["tasks"].size(), 2u);
  EXPECT_EQ(json["tasks"][0]["task"], "code");
  EXPECT_EQ(json["tasks"][0]["tested"], 24);
  EXPECT_EQ(json["tasks"][1]["task"], "chat");
  EXPECT_DOUBLE_EQ(json["tasks"][1]["acceptance_rate"], 8.0 / 12);
  EXPECT_DOUBLE_EQ(json["all"]["mean_accepted_length"], 1.8);
  EXPECT_TRUE(json["tasks"][1]["acceptance_interval_over_prompts"].is_null());  // of one prompt
  EXPECT_TRUE(json["all"]["sampled"]["expected_rate"].is_null());
}

}  // namespace
}  // namespace tandem::test
