// What a draft of no use costs on the real pair: the smaller model with its words exchanged, which is as sure of itself
// as ever. Times are those of a cost table, so that the clock has no say.
#include <gtest/gtest.h>

#include <cstdio>

#include "draft/auto_length.h"
#include "src/engine/session.h"
#include "tests/model/wrapped_model.h"
#include "tests/model_folder.h"

namespace tandem::test {
namespace {

// Gives the logits of each token to another one.
class Astray final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  Logits forward(const Batch& batch, KvCache& cache) override {
    const Logits right = WrappedModel::forward(batch, cache);
    const auto vocab = static_cast<std::size_t>(right.vocab);
    rows_.resize(right.data.size());
    for (std::size_t row = 0; row < rows_.size(); row += vocab) {
      for (std::size_t id = 0; id < vocab; ++id) rows_[row + (id + kAway) % vocab] = right.data[row + id];
    }
    return {rows_, right.vocab};
  }

 private:
  static constexpr std::size_t kAway = 1237;
  std::vector<float> rows_;
};

struct Spent {
  double seconds = 0;
  int tokens = 0;
};

// Adds up what the decisions of a policy cost by the table that it decides by.
class Charged final : public LengthPolicy {
 public:
  // `spent` outlives this.
  Charged(const CostModel& costs, Spent& spent) : policy_(costs, 16, 0, true), costs_(costs), spent_(spent) {}

  void begin_step(const DraftBudget& budget) override { policy_.begin_step(budget); }
  bool allow_draft_step(const DraftQuestion& question) override {
    const bool allowed = policy_.allow_draft_step(question);
    if (allowed) spent_.seconds += costs_.draft.seconds(question.feed);
    return allowed;
  }
  bool allow_row(const DraftQuestion& question) override { return policy_.allow_row(question); }
  bool allow_trial(const DraftQuestion& step, int reads) override {
    const bool allowed = policy_.allow_trial(step, reads);
    if (allowed) spent_.seconds += costs_.draft.seconds(reads);
    return allowed;
  }
  void observe_trial(DraftSource source, double confidence, bool came) override {
    policy_.observe_trial(source, confidence, came);
  }
  bool prefers(const DraftQuestion& known, const DraftQuestion& step) override { return policy_.prefers(known, step); }
  void observe(const TokenTree& tree, const Verdict& verdict) override {
    policy_.observe(tree, verdict);
    spent_.seconds += costs_.target.seconds(tree.size());
    spent_.tokens += 1 + verdict.accepted();
  }
  std::string_view name() const override { return policy_.name(); }

 private:
  AutoLength policy_;
  CostModel costs_;
  Spent& spent_;
};

// Of the quickstart's pair on two cores with AVX-512 VNNI, in passes of one row of the target (`tandem rows`).
CostModel costs_of_the_pair() {
  CostModel costs;
  costs.target =
      PassCosts(std::vector<RowSeconds>{{1, 1}, {2, 1.03}, {4, 1.10}, {6, 1.23}, {8, 1.33}, {12, 1.79}, {16, 2.10}});
  costs.draft = PassCosts(std::vector<RowSeconds>{{1, 0.25}, {4, 0.29}, {8, 0.37}, {16, 0.64}, {64, 2.43}});
  return costs;
}

const std::string kLongText =
    "The old lighthouse on the northern cape was built in 1874 by a company of masons who had come from three "
    "countries and shared no language. They cut the stone from the cliff below, hauled it up on sledges drawn by "
    "oxen, and set it in courses of which no two are of the same height, so that the sea, they said, would find no "
    "line to follow. For ninety years its keepers wrote down the weather four times a day, and beside it whatever "
    "seemed worth a line: the first swallow, a ship without a flag, the price of lamp oil, the death of a dog. When "
    "the light was made automatic the books were packed into crates and forgotten in a cellar of the harbour office. "
    "A student of climate found them there in 1998. Her comparison with the satellite records of the last decades "
    "showed that the spring storms now come eleven days earlier, that fog has become rarer by a third, and that the "
    "keepers, who were paid badly and complained of it often, had read their barometers with an accuracy which her "
    "own instruments hardly surpassed.";

TEST(UselessDraft, CostsLessThanTwoPercentOfAnAnswerOfTheRealPair) {
  if (small_models_only()) GTEST_SKIP() << "TANDEM_TEST_MODELS=small leaves out the Qwen pair";
  Options options = Options::from_text("draft: {kind: model}\nsampling: {temperature: 0}\n", "test.yaml");
  options.set("target.model=" + model_path("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"));
  options.set("draft.model=" + model_path("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"));
  options.set("stop.max_tokens=176");
  const Session session(read_config(std::move(options)));
  EngineChoice choice = session.configured_engine();
  Astray astray(*choice.draft);
  choice.draft = &astray;
  Spent spent;
  choice.wrap_policy = [&](std::unique_ptr<LengthPolicy>) {
    return std::make_unique<Charged>(costs_of_the_pair(), spent);
  };
  Engine engine = session.make_engine(std::move(choice));
  for (const std::string& prompt :
       {std::string(
            "Write a Python function that finds the longest common prefix of a list of strings, with its tests."),
        std::string("Explain in a few paragraphs how a refrigerator works and why it needs electricity at all."),
        "Summarise this text in several paragraphs.\n\n" + kLongText}) {
    engine.reset();
    spent = {};
    Generation generation(engine, session.tokenizer(), session.encode_chat({{"user", prompt}}), session.stop_rules());
    while (generation.advance()) continue;
    EXPECT_GT(spent.tokens, 150) << prompt;
    EXPECT_LT(spent.seconds, 1.02 * spent.tokens) << prompt;
    std::printf("%.3f of plain over %d tokens: %.40s\n", spent.seconds / spent.tokens, spent.tokens, prompt.c_str());
  }
}

}  // namespace
}  // namespace tandem::test
