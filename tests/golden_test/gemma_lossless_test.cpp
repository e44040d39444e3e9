// Greedy text of Gemma 3 270M past its sliding window of 512 and past twice that: the same with and without drafts.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "draft/length_policy.h"
#include "draft/registry.h"
#include "kernels/registry.h"
#include "src/arch/registry.h"
#include "src/engine/engine.h"
#include "src/model/transformer.h"
#include "tests/engine/random_tree_drafter.h"
#include "tests/model_folder.h"

namespace tandem::test {
namespace {

constexpr const char* kFile = "gemma-3-270m-q4_k_m.gguf";
constexpr int kContext = 1400;

// Ids of the longest golden text.
std::vector<TokenId> long_text() {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/golden/logits.jsonl");
  std::vector<TokenId> longest;
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row["model"] != "gemma3-270m" || !row.contains("ids") || row["ids"].size() <= longest.size()) continue;
    longest = row["ids"].get<std::vector<TokenId>>();
  }
  return longest;
}

class GemmaLossless : public testing::Test {
 protected:
  void SetUp() override {
    if (small_models_only()) GTEST_SKIP() << "skipped: TANDEM_TEST_MODELS=small leaves Gemma out";
    pool_ = std::make_unique<ThreadPool>(default_threads());
    backend_ = make_backend("auto", *pool_);
    file_ = GgufFile::open(model_path(kFile));
    model_ = std::make_unique<Transformer>(read_model_spec(*file_), *file_, *backend_, 512, kContext);
  }

  std::unique_ptr<Drafter> drafter(const std::string& kind, const std::vector<TokenId>& truth) const {
    if (kind == "random-tree") {
      std::vector<TokenId> alphabet(1000);
      std::iota(alphabet.begin(), alphabet.end(), 1000);
      return std::make_unique<RandomTreeDrafter>(1, std::move(alphabet), truth);
    }
    DrafterSetup setup;
    setup.kind = kind;
    setup.sampling = {.temperature = 0};
    setup.context = kContext;
    return make_drafter(setup);
  }

  // Prompt and `count` tokens more; counts what was accepted.
  std::vector<TokenId> answer(const std::string& kind, std::span<const TokenId> prompt, int count,
                              const std::vector<TokenId>& truth = {}) {
    const int length = kind == "random-tree" ? kMaxTreeNodes - 1 : 6;
    Engine engine({.target = model_.get(),
                   .cache = model_->make_cache(kContext, KvType::f16),
                   .drafter = drafter(kind, truth),
                   .policy = std::make_unique<FixedLength>(length, kMaxTreeNodes, 0),
                   .verifier = make_verifier("rejection"),
                   .sampler = Sampler({.temperature = 0}, {1, 0}, {}),
                   .prefill_chunk = 512});
    engine.start(prompt);
    while (engine.prefill_chunk()) continue;
    engine.first_token();
    for (int done = 1; done < count;) done += static_cast<int>(engine.step(count - done).size());
    counts_ = engine.metrics().total;
    return {engine.context().tokens().begin(), engine.context().tokens().end()};
  }

  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Transformer> model_;
  DraftCounts counts_;
};

TEST_F(GemmaLossless, GreedyTextPastOneAndTwoWindowsEqualsPlain) {
  const std::vector<TokenId> text = long_text();
  ASSERT_GT(text.size(), 1100u);
  for (const auto& [prompt, tokens] : {std::pair{440, 160}, {940, 160}, {1090, 60}}) {
    const std::span<const TokenId> start = std::span(text).first(static_cast<std::size_t>(prompt));
    const std::vector<TokenId> truth = answer("none", start, tokens);
    for (const char* kind : {"ngram", "recycle", "random-tree"}) {
      EXPECT_EQ(answer(kind, start, tokens, truth), truth) << kind << " after " << prompt;
      EXPECT_GT(counts_.tested, counts_.accepted);  // something was rolled back
      std::printf("%s, %d to %d tokens: %lld of %lld drafts accepted\n", kind, prompt, prompt + tokens,
                  static_cast<long long>(counts_.accepted), static_cast<long long>(counts_.tested));
    }
  }
}

}  // namespace
}  // namespace tandem::test
