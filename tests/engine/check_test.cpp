// What `tandem check` says of the product's rules, and of rules with a mistake.
#include "src/engine/check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "tests/engine/mutant_rules.h"
#include "tests/engine/random_tree_drafter.h"
#include "tests/engine/session_models.h"

namespace tandem::test {
namespace {

constexpr double kLevel = 1e-6;
constexpr int kDraws = 4000;

class CheckTest : public ::testing::Test, protected SessionModels {
 protected:
  CheckTest() { write_pair(); }

  // Three tokens may follow each prefix, so that a law has up to 81 continuations.
  std::unique_ptr<Session> session(const std::vector<std::string>& settings,
                                   const Session::DrafterFactory& make = make_drafter) {
    Options options = Options::from_text(
        "target: {context: 128}\ndraft: {kind: model, length: 3}\nsampling: {temperature: 1, top_k: 3, seed: 5}\n",
        "test.yaml");
    options.set("target.model=" + target_);
    options.set("draft.model=" + draft_);
    options.set("runtime.threads=1");
    for (const std::string& setting : settings) options.set(setting);
    return std::make_unique<Session>(read_config(std::move(options)), false, make);
  }
  static CheckOptions options() {
    CheckOptions options;
    options.draws = kDraws;
    return options;
  }
  static CheckOptions mutant(Mistake mistake) {
    CheckOptions with = options();
    with.make_rule = [mistake](std::string_view) { return std::make_unique<MutantRule>(mistake); };
    return with;
  }
  LawCheck law(const Session& session, const CheckOptions& options) {
    return *Checker(session, options).same_law(prompt_, kLevel, [](int, int) { return true; });
  }
  TextCheck text(const Session& session, const CheckOptions& options, double temperature) {
    StopRules rules;
    rules.max_tokens = 40;
    return *Checker(session, options).same_text(prompt_, rules, temperature);
  }

  std::string turns() {
    std::ofstream(folder_.path() + "/turns.gbnf") << "root ::= ([!-P] [(-z])+";
    return "constraint.grammar=" + folder_.path() + "/turns.gbnf";
  }

  std::vector<TokenId> prompt_{7, 8, 9, 60, 7, 8, 9, 61, 7, 8};
};

// The trees must not depend on the noise that decides about them.
std::unique_ptr<Drafter> random_trees(const DrafterSetup& setup) {
  if (setup.kind == "none") return make_drafter(setup);
  std::vector<TokenId> words(105);
  std::iota(words.begin(), words.end(), 0);
  return std::make_unique<RandomTreeDrafter>(setup.noise.seed + 1000003, words);
}

TEST_F(CheckTest, LosslessRulesPassTheLawWithEveryDrafter) {
  for (const char* rule : {"rejection", "block"}) {
    for (const char* kind : {"model", "ngram", "trees"}) {
      SCOPED_TRACE(std::string(rule) + ", " + kind);
      const bool trees = kind == std::string_view("trees");
      const auto tested =
          session({std::string("verify.rule=") + rule, std::string("draft.kind=") + (trees ? "ngram" : kind)},
                  trees ? Session::DrafterFactory(random_trees) : make_drafter);
      const LawCheck check = law(*tested, options());
      EXPECT_TRUE(check.passed()) << check.p_value << ", impossible " << check.impossible;
      EXPECT_GE(check.cells, 20);
      EXPECT_GT(check.covered, 0.5);
      EXPECT_LT(check.total_variation, 2 * check.expected_variation);
      EXPECT_LT(*check.detectable_variation, 0.1);
      EXPECT_GT(check.drafts.tested, trees ? 100 : 1000);
      EXPECT_LT(check.prefixes, trees ? 64 * kDraws : 2000);  // random trees hold hardly a prefix twice
    }
  }
}

TEST_F(CheckTest, PenaltiesBiasAndFiltersAreInTheLaw) {
  const auto tested = session({"sampling.repetition_penalty=1.5", "sampling.presence_penalty=0.3", "sampling.top_k=5",
                               "sampling.logit_bias={7: 2, 9: -inf}", "sampling.top_p=0.9", "sampling.min_p=0.05"});
  const LawCheck check = law(*tested, options());
  EXPECT_TRUE(check.passed()) << check.p_value << ", impossible " << check.impossible;
  EXPECT_GE(check.cells, 20);
}

TEST_F(CheckTest, MistakenRulesFailTheLaw) {
  const auto tested = session({});
  for (const Mistake mistake :
       {Mistake::accepts_all, Mistake::corrects_from_p, Mistake::corrects_from_q, Mistake::drops_drawn_tokens}) {
    const LawCheck check = law(*tested, mutant(mistake));
    EXPECT_FALSE(check.passed()) << static_cast<int>(mistake) << ": " << check.p_value;
    EXPECT_LT(check.p_value, kLevel) << static_cast<int>(mistake);
  }
}

// Greedy drafts hold what the filters leave, but one more penalty deep in a draft changes it.
TEST_F(CheckTest, PenaltiesThatDoNotFollowTheDraftAreImpossibleOrImprobable) {
  const auto tested = session({"sampling.repetition_penalty=3"});
  EXPECT_FALSE(law(*tested, mutant(Mistake::forgets_the_path)).passed());
  EXPECT_FALSE(text(*tested, mutant(Mistake::forgets_the_path), 0).passed());
}

// Characters of two sets in turns.
TEST_F(CheckTest, LosslessRulesPassTheLawUnderAGrammar) {
  for (const char* rule : {"rejection", "block"}) {
    for (const char* kind : {"model", "ngram", "hybrid"}) {
      SCOPED_TRACE(std::string(rule) + ", " + kind);
      const auto tested = session(
          {std::string("verify.rule=") + rule, std::string("draft.kind=") + kind, "draft.ngram.min_match=1", turns()});
      const LawCheck check = law(*tested, options());
      EXPECT_TRUE(check.passed()) << check.p_value << ", impossible " << check.impossible;
      EXPECT_GE(check.cells, 20);
      EXPECT_GT(check.drafts.tested, kind == std::string_view("ngram") ? 100 : 1000);
    }
  }
}

// A draft that knows nothing of the grammar is lossless still, as long as what it draws is tested.
TEST_F(CheckTest, DraftsWithoutTheGrammarPassTheLawUnlessRefusedTokensAreDropped) {
  const auto blind = [](const DrafterSetup& setup) {
    DrafterSetup without = setup;
    without.constraint = nullptr;
    return make_drafter(without);
  };
  const auto tested = session({turns()}, blind);
  EXPECT_TRUE(law(*tested, options()).passed());
  const LawCheck dropped = law(*tested, mutant(Mistake::drops_refused_tokens));
  EXPECT_FALSE(dropped.passed()) << dropped.p_value;
}

TEST_F(CheckTest, DrawsThatPlainDecodingNeverGivesFailByThemselves) {
  const auto tested = session({"sampling.top_k=1"});  // one continuation has all the probability
  EXPECT_TRUE(law(*tested, options()).passed());
  const LawCheck check = law(*tested, mutant(Mistake::accepts_all));
  EXPECT_GT(check.impossible, 0);
  EXPECT_FALSE(check.passed());
  EXPECT_EQ(check.cells, 1);
  EXPECT_FALSE(check.detectable_variation.has_value());
}

// Under a law that leaves the draft's own choices next to nothing, there is one cell, and what is outside counts.
TEST_F(CheckTest, ExcessOutsideASingleCellFails) {
  const auto tested = session({"sampling.temperature=0.02", "sampling.top_k=0"});
  EXPECT_TRUE(law(*tested, options()).passed());
  const LawCheck check = law(*tested, mutant(Mistake::accepts_all));
  EXPECT_EQ(check.cells, 1);
  EXPECT_LT(check.p_value, kLevel);
}

TEST_F(CheckTest, FlatLawsAreCountedOverFewerTokens) {
  const auto tested = session({"sampling.top_k=8"});
  const LawCheck check = law(*tested, options());
  EXPECT_LT(check.tokens, 4);
  EXPECT_GE(check.tokens, 2);
  EXPECT_TRUE(check.passed());
}

TEST_F(CheckTest, GreedyTextsOfEveryRuleAreEqual) {
  for (const char* rule : {"rejection", "block", "coupled", "typical"}) {
    for (const char* kind : {"model", "ngram"}) {
      const auto tested = session({std::string("verify.rule=") + rule, std::string("draft.kind=") + kind,
                                   "verify.lossy=true", "sampling.frequency_penalty=0.2"});
      const TextCheck check = text(*tested, options(), 0);
      EXPECT_TRUE(check.passed()) << rule << ", " << kind;
      EXPECT_EQ(check.tokens, 40);
      EXPECT_GT(check.drafts.proposed, 0);
    }
  }
}

TEST_F(CheckTest, CoupledGivesPlainsTextOfTheSeedAndRejectionDoesNot) {
  EXPECT_TRUE(text(*session({"verify.rule=coupled"}), options(), 1).passed());
  EXPECT_FALSE(text(*session({}), options(), 1).passed());
}

TEST_F(CheckTest, ADifferenceNamesTokenAndMargin) {
  const auto tested = session({"draft.length=1"});
  const TextCheck check = text(*tested, mutant(Mistake::emits_the_second_best), 0);
  ASSERT_TRUE(check.difference.has_value());
  EXPECT_GE(check.difference->index, 1);  // the first token is drawn without a draft
  EXPECT_LT(check.difference->index, check.tokens);
  EXPECT_NE(check.difference->plain, check.difference->drafted);
  ASSERT_TRUE(check.difference->margin.has_value());
  EXPECT_GT(*check.difference->margin, 0);
}

// A prompt past window and ring, whose continuations lie behind places that the ring no longer holds.
TEST_F(CheckTest, ModelsWithSlidingWindowsPassPastTheirRings) {
  TinyOptions sliding = small_options();
  sliding.architecture = "gemma3";
  write_pair(sliding);
  std::mt19937_64 random(3);
  prompt_ = random_tokens(random, 40);
  for (int i = 0; i < 100; ++i) prompt_.push_back(prompt_[static_cast<std::size_t>(i)]);
  for (const char* kind : {"ngram", "model", "hybrid"}) {
    SCOPED_TRACE(kind);
    const auto tested = session({std::string("draft.kind=") + kind, "target.context=256", "runtime.prefill_chunk=32"});
    ASSERT_TRUE(tested->engine().cache().layer(0).ring);
    ASSERT_LT(tested->engine().cache().layer(0).capacity, static_cast<int>(prompt_.size()));
    const TextCheck greedy = text(*tested, options(), 0);
    EXPECT_TRUE(greedy.passed());
    EXPECT_EQ(greedy.tokens, 40);
    const LawCheck check = law(*tested, options());
    EXPECT_TRUE(check.passed()) << check.p_value << ", impossible " << check.impossible;
    EXPECT_GE(check.cells, 20);
  }
  EXPECT_FALSE(
      law(*session({"target.context=256", "runtime.prefill_chunk=32"}), mutant(Mistake::accepts_all)).passed());
}

TEST_F(CheckTest, CancellingEndsEitherCheck) {
  const auto tested = session({});
  const std::atomic<bool> cancel{true};
  StopRules rules;
  rules.cancel = &cancel;
  const Checker checker(*tested, options());
  EXPECT_FALSE(checker.same_text(prompt_, rules, 0).has_value());
  EXPECT_FALSE(checker.same_law(prompt_, kLevel, [](int done, int) { return done < 3; }).has_value());
}

}  // namespace
}  // namespace tandem::test
