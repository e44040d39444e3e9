// Predictions against real runs on SmolLM2, which drafts for itself with its weights made coarser.
#include <gtest/gtest.h>

#include "src/base/stopwatch.h"
#include "src/engine/recording_run.h"
#include "src/engine/replay.h"
#include "tests/base/temp_dir.h"
#include "tests/model_folder.h"

namespace tandem::test {
namespace {

const std::vector<std::string> kPrompts{"List the months of the year, one a line.",
                                        "Write two sentences about the sea.",
                                        "Repeat this line three times: one two three four five six."};
constexpr int kTokens = 48;

class ReplaySmollm2 : public ::testing::Test {
 protected:
  ReplaySmollm2() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~ReplaySmollm2() override { ::unsetenv("XDG_CACHE_HOME"); }

  static Session session(const std::vector<std::string>& settings) {
    Options options = Options::from_text(
        "draft: {kind: hybrid, length: auto, quantize: q4_0}\nsampling: {temperature: 0}\n", "test.yaml");
    options.set("target.model=" + model_path("smollm2-135m-instruct-q4_1.gguf"));
    options.set("draft.model=" + model_path("smollm2-135m-instruct-q4_1.gguf"));
    options.set("stop.max_tokens=" + std::to_string(kTokens));
    for (const std::string& setting : settings) options.set(setting);
    return Session(read_config(std::move(options)));
  }

  static std::vector<TokenId> encoded(const Session& session, const std::string& prompt) {
    return session.encode_chat({{"user", prompt}});
  }

  TempDir folder_;
};

struct Timed {
  Metrics metrics;
  double seconds = 0;  // from the first token on
};

Timed run(const Session& session, Engine& engine, std::span<const TokenId> prompt) {
  engine.reset();
  Generation generation(engine, session.tokenizer(), prompt, session.stop_rules());
  generation.advance();
  const double start = now_seconds();
  while (generation.advance()) continue;
  return {generation.result().metrics, now_seconds() - start};
}

// Of three runs: noise only adds.
Timed quickest(const Session& session, Engine& engine, std::span<const TokenId> prompt) {
  Timed best = run(session, engine, prompt);
  for (int i = 0; i < 2; ++i) {
    const Timed again = run(session, engine, prompt);
    if (again.seconds < best.seconds) best = again;
  }
  return best;
}

TEST_F(ReplaySmollm2, CountsAreThoseOfARealRunAndSecondsAlike) {
  Session recorded = session({});
  Recorder recorder(recorded, 8);
  Recording recording = recorder.empty();
  for (const std::string& prompt : kPrompts) {
    recording.answers.push_back(recorder.answer(prompt, "", encoded(recorded, prompt), recorded.stop_rules()).value());
  }
  const Replayer replayer(std::move(recording));
  for (const ReplaySetting& setting : {ReplaySetting{.kind = "model", .length = 3, .head_rows = {}},
                                       {.kind = "hybrid", .length = 6, .head_rows = {}},
                                       {.kind = "hybrid", .length = {}, .head_rows = {}}}) {
    const Prediction prediction = replayer.predict(setting);
    const std::string length = setting.length ? std::to_string(*setting.length) : "auto";
    const std::string what = setting.kind + ' ' + length;
    const Session real = session({"draft.kind=" + setting.kind, "draft.length=" + length});
    EngineChoice plain = real.configured_engine();
    plain.draft_kind = "none";
    Engine drafting = real.make_engine(real.configured_engine()), plainly = real.make_engine(std::move(plain));
    double drafted_seconds = 0, plain_seconds = 0;
    for (std::size_t i = 0; i < kPrompts.size(); ++i) {
      const std::vector<TokenId> prompt = encoded(real, kPrompts[i]);
      plain_seconds += quickest(real, plainly, prompt).seconds;
      const Timed drafted = quickest(real, drafting, prompt);
      drafted_seconds += drafted.seconds;
      if (!setting.length) continue;  // a clock decides
      const Metrics& replayed = prediction.answers[i].metrics;
      EXPECT_EQ(replayed.steps, drafted.metrics.steps) << what;
      EXPECT_EQ(replayed.total.proposed, drafted.metrics.total.proposed) << what;
      EXPECT_EQ(replayed.total.tested, drafted.metrics.total.tested) << what;
      EXPECT_EQ(replayed.total.accepted, drafted.metrics.total.accepted) << what;
    }
    // Passes of 3 ms on a machine that may be busy: half as fast again happens by noise alone. A term left out of the
    // costs would be more than the bar, because a draft step costs about as much here as plain decoding of a token.
    const double measured = plain_seconds / drafted_seconds;
    EXPECT_LT(prediction.total.ratio() / measured, 2) << what;
    EXPECT_GT(prediction.total.ratio() / measured, 0.5) << what;
    std::printf("%s: predicted %.3f, measured %.3f\n", what.c_str(), prediction.total.ratio(), measured);
  }
}

}  // namespace
}  // namespace tandem::test
