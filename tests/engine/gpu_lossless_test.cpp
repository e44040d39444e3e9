// Drafting on the CUDA kernels changes no text: in their emulation and, where there is one, on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "src/base/error.h"
#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

class GpuLossless : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    try {
      Rig::shared(GetParam());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      GTEST_SKIP() << error.what();
    }
  }
  Rig& rig() { return Rig::shared(GetParam()); }
};

TEST_P(GpuLossless, DraftedIdsEqualPlainOnesAndLeaveATrueCache) {
  constexpr int kTokens = 10;
  std::vector<TokenId> prompt = random_prompt(3, 5);
  prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 4);  // so that n-grams match
  RigOptions greedy, shared_noise;
  shared_noise.rule = "coupled";
  shared_noise.sampling.temperature = 0.8f;
  for (const RigOptions& options : {greedy, shared_noise}) {
    const std::vector<TokenId> truth = rig().plain(prompt, kTokens, options);
    for (const char* kind : {"model", "ngram", "random-tree", "wrong"}) {
      SCOPED_TRACE(kind + (" with " + options.rule));
      Engine engine = rig().engine(rig().any_drafter(kind, truth, options), options);
      EXPECT_EQ(run(engine, prompt, kTokens), truth);
      rig().expect_true_cache(engine);
    }
  }
}

// What the steps of a run copied to the host.
struct Copied {
  std::uint64_t bytes;
  std::uint64_t ids;        // bytes of an id for each row
  std::uint64_t ids_alone;  // the same of steps of one node
  std::uint64_t nodes;      // of the other steps' trees
  std::uint64_t visited;    // those on the way of the verdict
};

class GpuPicks : public GpuLossless {
 protected:
  // An engine whose rows all have to be looked at: a token that may not be drawn anyway is banned once more.
  static RigOptions by_the_host(RigOptions options) {
    options.sampling.logit_bias = {{kBanned, -std::numeric_limits<double>::infinity()}};
    return options;
  }
  static RigOptions options_of(const std::string& rule, double temperature) {
    RigOptions options;
    options.rule = rule;
    options.sampling.temperature = temperature;
    std::vector<bool> usable(108, true);
    usable[kBanned] = false;
    options.mask = TokenMask(usable);
    return options;
  }
  std::uint64_t bytes_to_host() {
    return rig().target().backend().counts().bytes_to_host + rig().draft().backend().counts().bytes_to_host;
  }

  Copied run_steps(Engine& engine, const std::vector<TokenId>& prompt, int tokens, std::vector<TokenId>& text) {
    begin(engine, prompt);
    Copied copied{};
    for (int done = 1; done < tokens;) {
      const std::uint64_t before = bytes_to_host();
      done += checked_step(engine, tokens - done);
      copied.bytes += bytes_to_host() - before;
      const auto nodes = static_cast<std::uint64_t>(engine.last_tree().size());
      copied.ids += sizeof(TokenId) * nodes;
      if (nodes == 1) {
        copied.ids_alone += sizeof(TokenId);
      } else {
        copied.nodes += nodes;
        copied.visited += engine.last_verdict().path().size();
      }
    }
    text.assign(engine.context().tokens().begin(), engine.context().tokens().end());
    return copied;
  }
  std::vector<TokenId> prompt() const {
    std::vector<TokenId> prompt = random_prompt(3, 5);
    prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 4);
    return prompt;
  }

  static constexpr TokenId kBanned = 107;
  static constexpr int kTokens = 7;
};

TEST_P(GpuPicks, GreedyAndCoupledStepsCopyIdsOnlyAndGiveTheTextOfTheHostsPicks) {
  RigOptions filtered = options_of("coupled", 1);
  filtered.sampling.top_k = 12;
  filtered.sampling.top_p = 0.9;
  for (const RigOptions& options : {options_of("rejection", 0), options_of("coupled", 0.8), filtered}) {
    const std::vector<TokenId> truth = rig().plain(prompt(), kTokens, by_the_host(options));
    for (const char* kind : {"none", "random-tree"}) {
      SCOPED_TRACE(kind + (" with " + options.rule));
      std::vector<TokenId> text;
      Engine engine = rig().engine(rig().any_drafter(kind, truth, options), options);
      const Copied copied = run_steps(engine, prompt(), kTokens, text);
      EXPECT_EQ(text, truth);
      EXPECT_EQ(copied.bytes, copied.ids);
    }
  }
}

// Without top-k the rules of speculative sampling need the rows on their way; with it, the candidates of all.
TEST_P(GpuPicks, OtherRulesCopyTheirCandidatesOrTheRowsTheyVisit) {
  constexpr std::uint64_t kCandidateBytes = sizeof(TokenId) + sizeof(float);
  const std::uint64_t row_bytes = sizeof(float) * static_cast<std::uint64_t>(rig().target().spec().vocab);
  for (const auto& [rule, top_k] : {std::pair("rejection", 0), std::pair("rejection", 10), std::pair("block", 10)}) {
    SCOPED_TRACE(fmt::format("{}, top_k {}", rule, top_k));
    RigOptions options = options_of(rule, 0.8);
    options.sampling.top_k = top_k;
    options.sampling.top_p = top_k > 0 ? 0.95 : 1;
    const RigOptions by_rows = by_the_host(options);
    const std::vector<TokenId> truth = rig().plain(prompt(), kTokens, by_rows);
    std::vector<TokenId> text, by_host;
    Engine engine = rig().engine(rig().any_drafter("random-tree", truth, options), options);
    const Copied copied = run_steps(engine, prompt(), kTokens, text);
    Engine other = rig().engine(rig().any_drafter("random-tree", truth, by_rows), by_rows);
    run_steps(other, prompt(), kTokens, by_host);
    EXPECT_EQ(text, by_host);
    EXPECT_GT(copied.nodes, 0u);
    EXPECT_EQ(copied.bytes,
              copied.ids_alone + (top_k > 0 ? copied.nodes * top_k * kCandidateBytes : copied.visited * row_bytes));
  }
}

// A draft under top-k gets by with candidates: its steps copy no row, and propose what they would from rows.
TEST_P(GpuPicks, DraftStepsCopyCandidates) {
  for (const char* rule : {"rejection", "coupled"}) {
    RigOptions options = options_of(rule, 0.8);
    options.sampling.top_k = 10;
    options.length = 2;
    std::vector<TokenId> text, by_host;
    Engine engine = rig().engine(rig().drafter("model", options), options);
    const Copied copied = run_steps(engine, prompt(), kTokens, text);
    Engine other = rig().engine(rig().drafter("model", by_the_host(options)), by_the_host(options));
    const Copied rows = run_steps(other, prompt(), kTokens, by_host);
    EXPECT_EQ(text, by_host);
    EXPECT_EQ(copied.nodes, rows.nodes);
    EXPECT_LT(copied.bytes, rows.bytes);
    // A draft step for each node at most, ten candidates for each of both models' rows at most.
    EXPECT_LE(copied.bytes, copied.ids_alone + 2 * copied.nodes * 10 * 8);
  }
}

// Whoever wants a row gets it, picked or not.
TEST_P(GpuPicks, RowsStayThereForThoseWhoAsk) {
  RigOptions options = options_of("coupled", 0.8);
  options.logprobs = 3;
  const std::vector<TokenId> truth = rig().plain(prompt(), kTokens, by_the_host(options));
  Engine engine = rig().engine(rig().any_drafter("oracle", truth, options), options);
  Engine other = rig().engine(rig().any_drafter("oracle", truth, by_the_host(options)), by_the_host(options));
  begin(engine, prompt());
  begin(other, prompt());
  for (int step = 0; step < 3; ++step) {
    checked_step(engine, 4);
    std::vector<std::vector<float>> rows;  // until the next pass of the model that both engines share
    for (int node = engine.last_tree().size() - 1; node >= 0; --node) {
      const auto row = engine.last_logits().row(node);
      rows.emplace(rows.begin(), row.begin(), row.end());
    }
    checked_step(other, 4);
    ASSERT_EQ(engine.logprobs().size(), other.logprobs().size());
    for (std::size_t i = 0; i < engine.logprobs().size(); ++i) {
      EXPECT_EQ(engine.logprobs()[i].drawn.id, other.logprobs()[i].drawn.id);
      EXPECT_EQ(engine.logprobs()[i].drawn.logprob, other.logprobs()[i].drawn.logprob);
    }
    ASSERT_EQ(engine.last_tree().size(), other.last_tree().size());
    for (std::size_t node = 0; node < rows.size(); ++node) {
      const auto same = other.last_logits().row(static_cast<int>(node));
      EXPECT_EQ(rows[node], std::vector<float>(same.begin(), same.end())) << "node " << node;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuPicks);
INSTANTIATE_TEST_SUITE_P(Backends, GpuPicks, ::testing::ValuesIn(gpu_backends()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuLossless);
INSTANTIATE_TEST_SUITE_P(Backends, GpuLossless, ::testing::ValuesIn(gpu_backends()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace tandem::test
