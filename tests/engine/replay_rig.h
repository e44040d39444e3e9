// Recordings of tiny models, and real runs of the same models to compare predictions with.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/engine/recording_run.h"
#include "src/engine/replay.h"
#include "tests/engine/session_models.h"

namespace tandem::test {

inline constexpr int kReplayedTokens = 40;

class ReplayRig : public ::testing::Test, protected SessionModels {
 protected:
  ReplayRig() { write_pair(); }

  Session session(const std::vector<std::string>& settings, bool reference = false) const {
    Options options = Options::from_text(
        "target: {context: 256}\ndraft: {kind: hybrid, length: auto, ngram: {min_match: 1}}\n"
        "sampling: {temperature: 0, seed: 5}\nruntime: {prefill_chunk: 16, threads: 1}\n",
        "test.yaml");
    options.set("target.model=" + target_);
    options.set("draft.model=" + draft_);
    options.set("stop.max_tokens=" + std::to_string(kReplayedTokens));
    for (const std::string& setting : settings) options.set(setting);
    return Session(read_config(std::move(options)), reference);
  }

  static std::vector<std::vector<TokenId>> prompts(int count) {
    std::mt19937_64 random(11);
    std::vector<std::vector<TokenId>> prompts;
    for (int i = 0; i < count; ++i) prompts.push_back(random_tokens(random, 3 + static_cast<int>(random() % 40)));
    return prompts;
  }

  static Recording record(const Session& session, const std::vector<std::vector<TokenId>>& prompts, int longest = 8) {
    Recorder recorder(session, longest);
    Recording recording = recorder.empty();
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto answer = recorder.answer("prompt " + std::to_string(i), "", prompts[i], session.stop_rules());
      recording.answers.push_back(answer.value());
    }
    return recording;
  }

  static GenerationResult answer(const Session& session, Engine& engine, std::span<const TokenId> prompt) {
    engine.reset();
    Generation generation(engine, session.tokenizer(), prompt, session.stop_rules());
    while (generation.advance()) continue;
    return generation.result();
  }
};

}  // namespace tandem::test
