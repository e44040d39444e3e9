// Costs of a replay, the settings that it varies, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/engine/replay_rig.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;
using ReplaySettingsTest = ReplayRig;

// Seconds are sums of recorded passes: with times that are made up they are known.
TEST_F(ReplaySettingsTest, SecondsAreThoseOfThePassesThatAStepMakes) {
  Recording recording = record(session({}), prompts(1));
  RecordedTimes& times = recording.answers[0].times;
  times = {{9, 11, 10}, {2, 1, 3, 2}, {{2, 11, 10}, {4, 13, 10}}, {{4, 3, 2}}, 7, 0.25, 0.5};
  const int prompt = recording.answers[0].prompt;
  const Replayer replayer(std::move(recording));
  const Prediction plain = replayer.predict({.kind = "none", .length = 0, .head_rows = {}});
  EXPECT_DOUBLE_EQ(plain.total.seconds(), (kReplayedTokens - 1) * 10.75);
  EXPECT_DOUBLE_EQ(plain.total.ratio(), 1);
  EXPECT_DOUBLE_EQ(plain.tokens_per_second(), 1 / 10.75);
  const ReplayedAnswer drafted = replayer.predict({.kind = "model", .length = 3, .head_rows = {}}).total;
  const Metrics& m = drafted.metrics;
  double verify = 0;
  for (int rows = 1; rows <= 4; ++rows) {
    verify += static_cast<double>(m.steps_by_rows[static_cast<std::size_t>(rows)]) *
              std::vector{10., 11., 12., 13.}[rows - 1];
  }
  EXPECT_NEAR(drafted.verify_seconds, verify, 1e-4);  // times are recorded as floats
  EXPECT_NEAR(drafted.sample_seconds, 0.25 * (kReplayedTokens - 1), 1e-9);
  EXPECT_NEAR(drafted.other_seconds, 0.5 * static_cast<double>(m.steps), 1e-9);
  EXPECT_DOUBLE_EQ(drafted.plain_seconds, (kReplayedTokens - 1) * 10.75);
  // Each proposed token takes a pass, the first reads the prompt, and what was accepted at the end of a proposal is
  // caught up on in a pass of two rows.
  const double least = 2.0 * static_cast<double>(m.total.proposed - 1) + 7.0 * (prompt > 4);
  EXPECT_GE(drafted.draft_seconds, least);
  EXPECT_LE(drafted.draft_seconds, least + 3 + (3. - 2) * static_cast<double>(m.steps));
}

TEST_F(ReplaySettingsTest, AStepTakesWhatStepsTakeOnAverageButForInterruptions) {
  RecordedAnswer answer;
  answer.prompt = 2;
  answer.times.target_steps = {1, 1, 1, 2, 100};
  const ReplayCosts costs = replay_costs(answer, {}, {}, 1);
  EXPECT_DOUBLE_EQ(costs.target.seconds(1), (1 + 1 + 1 + 2 + 3) / 5.0);
}

TEST_F(ReplaySettingsTest, WhatDoesNotMatterIsNotVaried) {
  const Replayer replayer(record(session({}), prompts(1)));
  EXPECT_EQ(replayer
                .combinations({.kinds = {"none"},
                               .rules = {"block", "coupled"},
                               .lengths = {1, 2},
                               .min_probabilities = {0, 0.5},
                               .head_rows = {10}})
                .size(),
            1u);
  EXPECT_EQ(replayer
                .combinations({.kinds = {"ngram"},
                               .rules = {"block", "coupled"},
                               .lengths = {1, 2, 0},
                               .min_probabilities = {0, 0.5},
                               .head_rows = {10, 20}})
                .size(),
            5u);
  EXPECT_EQ(replayer
                .combinations({.kinds = {"model"},
                               .rules = {"block", "coupled"},
                               .lengths = {{}, 2},
                               .min_probabilities = {0},
                               .head_rows = {10, {}}})
                .size(),
            4u);
  const auto recorded = replayer.combinations({});
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0], (ReplaySetting{.kind = "hybrid", .length = {}, .head_rows = {}}));
}

TEST_F(ReplaySettingsTest, RefusesWhatTheRecordingCannotAnswer) {
  const auto refusal = [](const Replayer& replayer, const ReplayGrid& grid) -> std::string {
    try {
      replayer.combinations(grid);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "accepted";
  };
  const Replayer model(record(session({}), prompts(1))), ngram(record(session({"draft.kind=ngram"}), prompts(1)));
  EXPECT_THAT(
      refusal(ngram, {.kinds = {"model"}, .rules = {}, .lengths = {}, .min_probabilities = {}, .head_rows = {}}),
      HasSubstr("kind model: the recording has no draft model"));
  EXPECT_THAT(
      refusal(model, {.kinds = {"recycle"}, .rules = {}, .lengths = {}, .min_probabilities = {}, .head_rows = {}}),
      HasSubstr("kind recycle: expected none, ngram, model or hybrid"));
  EXPECT_THAT(refusal(model, {.kinds = {}, .rules = {}, .lengths = {16}, .min_probabilities = {}, .head_rows = {}}),
              HasSubstr("length 16: expected auto or 0..15"));
  EXPECT_THAT(refusal(model, {.kinds = {}, .rules = {}, .lengths = {}, .min_probabilities = {}, .head_rows = {113}}),
              HasSubstr("head rows 113: expected 1..112"));
  const Replayer hot(record(session({"sampling.temperature=1"}), prompts(1)));
  EXPECT_THAT(
      refusal(hot, {.kinds = {}, .rules = {"typical"}, .lengths = {}, .min_probabilities = {}, .head_rows = {}}),
      HasSubstr("rule typical: expected rejection, block or coupled"));
  Recording changed = record(session({}), prompts(1));
  RecordedAnswer& answer = changed.answers[0];
  std::swap(answer.target[5], answer.target[6]);
  const Replayer contradicting(std::move(changed));
  EXPECT_THROW(contradicting.predict({.kind = "none", .length = 0, .head_rows = {}}), Error);
  EXPECT_THROW(Replayer({}), Error);
}

// A drafter may begin with the end of a long text, whose places are then those of the text.
TEST_F(ReplaySettingsTest, AModelThatSkipsTheBeginningStandsWhereItBegins) {
  const std::vector<TokenId> text{1, 2, 3, 1, 2, 4, 5};
  std::vector<int> lengths, depths;
  ReplayModel model({.text = text,
                     .prompt = 2,
                     .branches = {},
                     .vocabulary = 8,
                     .context = 16,
                     .max_rows = 16,
                     .write =
                         [&](const ReplayPlace& place, std::span<float>) {
                           lengths.push_back(place.length);
                           depths.push_back(place.depth);
                         },
                     .passed = [](int) {}});
  const auto run = [&](std::vector<TokenId> tokens, int committed) {
    KvCache cache = model.make_cache(16, KvType::f32);
    const std::vector<Position> positions(tokens.size());
    const int last = static_cast<int>(tokens.size()) - 1;
    model.begin_step(committed);
    model.forward({tokens, positions, {}, {&last, 1}}, cache);
  };
  run({1, 2, 3, 1}, 4);  // from the beginning
  run({3, 1}, 4);        // skipping two
  run({3, 1, 2}, 4);     // and a drafted token that is the text's
  run({3, 1, 7}, 4);     // and one that is not
  EXPECT_THAT(lengths, ::testing::ElementsAre(4, 4, 5, 5));
  EXPECT_THAT(depths, ::testing::ElementsAre(0, 0, 0, -1));
}

TEST_F(ReplaySettingsTest, RefusesToRecordWhatDoesNotReplay) {
  for (const std::string kind : {"none", "recycle"}) {
    const Session other = session({"draft.kind=" + kind});
    EXPECT_THROW(Recorder(other, 8), Error) << kind;
  }
  const Session fixed = session({"draft.length=3"});
  EXPECT_THROW(Recorder(fixed, 8), Error) << "its costs are not known";
}

}  // namespace
}  // namespace tandem::test
