// Bias, penalties and log-probabilities through the whole engine: drafting changes none of them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/engine_rig.h"
#include "tests/sample/plain_chain.h"

namespace tandem::test {
namespace {

constexpr int kTokens = 24;
constexpr int kLogprobs = 5;

// Strong enough to change the text, window shorter than the prompt, bias on drawn tokens.
RigOptions penalised_options() {
  RigOptions options;
  options.sampling.repetition_penalty = 1.3;
  options.sampling.presence_penalty = 0.2;
  options.sampling.frequency_penalty = 0.5;
  options.sampling.penalty_window = 12;
  options.sampling.logit_bias = {{3, -HUGE_VAL}, {40, 0.5}, {50, 0.25}};
  return options;
}

class Penalised : public ::testing::TestWithParam<std::string> {
 protected:
  Rig& rig() { return Rig::shared(GetParam()); }

  // The answer of a loop of its own: one token at a time, the whole vocabulary penalised, the first best taken.
  // `logprobs`: log-softmax of each answer token.
  std::vector<TokenId> by_hand(const std::vector<TokenId>& prompt, const RigOptions& options,
                               std::vector<double>* logprobs = nullptr) {
    std::vector<TokenId> tokens = prompt;
    KvCache cache = rig().target().make_cache(options.capacity, rig().kv_type());
    std::vector<float> row = feed(rig().target(), cache, tokens);
    for (int i = 0; i < kTokens; ++i) {
      const std::vector<double> logits = tandem::testing::penalised(row, options.sampling, tokens);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      double total = 0;
      for (const float logit : row) total += std::exp(static_cast<double>(logit));
      if (logprobs != nullptr) logprobs->push_back(row[static_cast<std::size_t>(best)] - std::log(total));
      tokens.push_back(static_cast<TokenId>(best));
      row = feed(rig().target(), cache, std::span(tokens).last(1));
    }
    return tokens;
  }
};

std::vector<TokenId> repeating_prompt() {
  std::vector<TokenId> prompt = random_prompt(3, 5);
  for (int i = 0; i < 15; ++i) prompt.push_back(prompt[static_cast<std::size_t>(i)]);
  return prompt;
}

TEST_P(Penalised, GreedyIdsCountTheEmittedTokensForEveryDrafterAndLength) {  // B25
  const std::vector<TokenId> prompt = repeating_prompt();
  RigOptions options = penalised_options();
  const std::vector<TokenId> truth = by_hand(prompt, options);
  ASSERT_NE(truth, rig().plain(prompt, kTokens));  // the penalties do something
  int accepted = 0;
  for (const std::string& kind : Rig::kinds()) {
    for (const int length : {0, 1, 4, 16}) {
      SCOPED_TRACE(kind + " of length " + std::to_string(length));
      options.length = length;
      Engine engine = rig().engine(rig().any_drafter(kind, truth, options), options);
      EXPECT_EQ(run(engine, prompt, kTokens), truth);
      if (kind == "model" || kind == "random-tree") accepted += static_cast<int>(engine.metrics().total.accepted);
      if (kind == "oracle" || kind == "self") {  // the draft's own distribution is penalised along its path
        EXPECT_EQ(engine.metrics().total.accepted, engine.metrics().total.proposed);
      }
    }
  }
  EXPECT_GT(accepted, 10);
}

TEST_P(Penalised, SampledSelfDraftIsAlwaysAccepted) {  // both sides use one distribution, penalties included
  RigOptions options = penalised_options();
  options.sampling.temperature = 1;
  options.sampling.top_p = 0.9;
  Engine engine = rig().engine(rig().drafter("self", options), options);
  run(engine, repeating_prompt(), kTokens);
  EXPECT_GT(engine.metrics().total.proposed, 10);
  EXPECT_EQ(engine.metrics().total.accepted, engine.metrics().total.proposed);
}

// Prompt, answer and the recorded log-probabilities of it.
std::vector<TokenLogprobs> recorded(Engine& engine, const std::vector<TokenId>& prompt) {
  begin(engine, prompt);
  std::vector<TokenLogprobs> all(engine.logprobs().begin(), engine.logprobs().end());
  for (int done = 1; done < kTokens;) {
    const std::size_t count = engine.step(kTokens - done).size();
    EXPECT_EQ(engine.logprobs().size(), count);
    all.insert(all.end(), engine.logprobs().begin(), engine.logprobs().end());
    done += static_cast<int>(count);
  }
  return all;
}

TEST_P(Penalised, LogprobsAreTheSameBitsWithAndWithoutDrafts) {
  const std::vector<TokenId> prompt = repeating_prompt();
  RigOptions options = penalised_options();
  options.logprobs = kLogprobs;
  std::vector<double> wanted;
  const std::vector<TokenId> truth = by_hand(prompt, options, &wanted);
  Engine plain = rig().engine(rig().drafter("none"), options);
  const std::vector<TokenLogprobs> reference = recorded(plain, prompt);
  ASSERT_EQ(reference.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(reference[i].drawn.id, truth[prompt.size() + i]);
    EXPECT_NEAR(reference[i].drawn.logprob, wanted[i], 1e-12) << i;  // of the raw row, whatever the penalties did to it
    ASSERT_EQ(reference[i].count, kLogprobs);
    for (int j = 1; j < kLogprobs; ++j) EXPECT_GE(reference[i].best[j - 1].logprob, reference[i].best[j].logprob);
    EXPECT_GE(reference[i].best[0].logprob, reference[i].drawn.logprob);
  }
  for (const std::string& kind : Rig::kinds()) {
    for (const int length : {1, 4, 16}) {
      SCOPED_TRACE(kind + " of length " + std::to_string(length));
      options.length = length;
      Engine engine = rig().engine(rig().any_drafter(kind, truth, options), options);
      const std::vector<TokenLogprobs> got = recorded(engine, prompt);
      ASSERT_EQ(got.size(), reference.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].drawn.id, reference[i].drawn.id);
        ASSERT_EQ(got[i].drawn.logprob, reference[i].drawn.logprob) << i;
        for (int j = 0; j < kLogprobs; ++j) {
          ASSERT_EQ(got[i].best[j].id, reference[i].best[j].id) << i;
          ASSERT_EQ(got[i].best[j].logprob, reference[i].best[j].logprob) << i;
        }
      }
    }
  }
}

TEST_P(Penalised, LogprobsAreNotRecordedUnasked) {
  Engine engine = rig().engine(rig().drafter("self"));
  begin(engine, repeating_prompt());
  engine.step(5);
  EXPECT_TRUE(engine.logprobs().empty());
}

INSTANTIATE_TEST_SUITE_P(Backends, Penalised, ::testing::ValuesIn(backends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::test
