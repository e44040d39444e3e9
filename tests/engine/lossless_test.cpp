// Greedy losslessness and the state of engine and caches after every step, for every drafter and length.
#include <gtest/gtest.h>

#include "draft/model_drafter.h"
#include "src/base/error.h"
#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

struct Place {
  std::string backend;
  int threads;
  std::optional<KvType> kv;  // unset: the backend's own
  std::string name() const {
    std::string text = backend + "_threads_" + std::to_string(threads);
    return kv ? text.append("_").append(name_of(*kv)) : text;
  }
};
void PrintTo(const Place& place, std::ostream* out) { *out << place.name(); }

std::vector<Place> places() {
  std::vector<Place> places;
  for (const std::string& backend : backends()) {
    for (const int threads : {1, 2}) places.push_back({backend, threads, {}});
    places.push_back({backend, 1, KvType::q8_0});
  }
  return places;
}

class Lossless : public ::testing::TestWithParam<Place> {
 protected:
  Rig& rig() { return Rig::shared(GetParam().backend, GetParam().threads, GetParam().kv); }
  // Plain decoding on one thread.
  Rig& plain_rig() { return Rig::shared(GetParam().backend, 1, GetParam().kv); }
  // Two threads on tiny ops mostly wait for each other, the more so beside other tests: they get a part of the cases,
  // as do the caches of other types.
  bool small() const { return GetParam().threads > 1 || GetParam().kv; }
  std::vector<std::string> kinds() const {
    return small() ? std::vector<std::string>{"model", "hybrid", "oracle", "random-tree"} : Rig::kinds();
  }
};

// A prompt that repeats itself (so that n-grams match) and one that does not.
std::vector<std::vector<TokenId>> prompts() {
  std::vector<TokenId> repeating = random_prompt(3, 5);
  for (int i = 0; i < 15; ++i) repeating.push_back(repeating[i]);
  return {repeating, random_prompt(4, 11)};
}

TEST_P(Lossless, GreedyIdsEqualPlainForEveryDrafterAndLength) {
  constexpr int kTokens = 24;
  const std::vector<int> lengths = small() ? std::vector{4, kAuto} : std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, kAuto};
  for (const std::vector<TokenId>& prompt : prompts()) {
    const std::vector<TokenId> truth = plain_rig().plain(prompt, kTokens);
    for (const std::string& kind : kinds()) {
      for (const int length : lengths) {
        SCOPED_TRACE(kind + " of length " + std::to_string(length));
        const RigOptions options{.length = length};
        Engine engine = rig().engine(rig().any_drafter(kind, truth), options);
        EXPECT_EQ(run(engine, prompt, kTokens), truth);
        const Metrics& m = engine.metrics();
        EXPECT_EQ(m.generated, kTokens);
        if (length == kAuto) continue;  // draft/auto_length_test says how much it drafts
        if (kind == "none" || length == 0) {
          EXPECT_EQ(m.total.proposed, 0);
          EXPECT_EQ(m.steps, kTokens - 1);
        } else if (kind == "oracle" || kind == "self") {
          EXPECT_EQ(m.total.accepted, m.total.proposed);
          EXPECT_EQ(m.steps, (kTokens - 1 + length) / (length + 1));
        } else if (kind == "wrong") {
          EXPECT_EQ(m.total.accepted, 0);
          EXPECT_EQ(m.total.tested, kTokens - 2);  // the last step has room for one token and drafts none
        }
      }
    }
  }
}

TEST_P(Lossless, GreedyIdsEqualPlainUnderEveryRule) {
  constexpr int kTokens = 24;
  for (const std::vector<TokenId>& prompt : prompts()) {
    const std::vector<TokenId> truth = plain_rig().plain(prompt, kTokens);
    for (const std::string rule : {"block", "coupled", "typical"}) {
      for (const std::string& kind : kinds()) {
        for (const int length : small() ? std::vector{kAuto} : std::vector{1, 4, 16, kAuto}) {
          SCOPED_TRACE(rule + ", " + kind + " of length " + std::to_string(length));
          const RigOptions options{.length = length, .rule = rule};
          Engine engine = rig().engine(rig().any_drafter(kind, truth, options), options);
          EXPECT_EQ(run(engine, prompt, kTokens), truth);
          if (kind == "oracle" || (kind == "self" && rule != "typical")) {
            // What `self` proposes beside its best tokens is not tested, but by `typical`, which looks at all siblings.
            EXPECT_EQ(engine.metrics().total.accepted, engine.metrics().total.tested);
          }
        }
      }
    }
  }
}

// Fixed lengths that leave room for siblings: deterministic ones here.
TEST_P(Lossless, GreedyIdsEqualPlainForTreesOfADraftModel) {
  constexpr int kTokens = 24;
  for (const std::vector<TokenId>& prompt : prompts()) {
    const std::vector<TokenId> truth = plain_rig().plain(prompt, kTokens);
    for (const std::string rule : {"rejection", "block", "coupled"}) {
      for (const std::string kind : {"model", "hybrid"}) {
        for (const int nodes : small() ? std::vector{12} : std::vector{5, 12, kMaxTreeNodes}) {
          SCOPED_TRACE(rule + ", " + kind + " of nodes " + std::to_string(nodes));
          const RigOptions options{.length = 3, .max_nodes = nodes, .shape = DraftShape::tree, .rule = rule};
          Engine engine = rig().engine(rig().drafter(kind, options), options);
          begin(engine, prompt);
          int siblings = 0;
          while (engine.context().size() < static_cast<int>(prompt.size()) + kTokens) {
            checked_step(engine, static_cast<int>(prompt.size()) + kTokens - engine.context().size());
            rig().expect_true_cache(engine);
            siblings += engine.last_tree().size() - 1 - engine.last_tree().max_depth();
          }
          EXPECT_GT(siblings, 0);
          const std::span<const TokenId> all = engine.context().tokens();
          EXPECT_EQ(std::vector<TokenId>(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()),
                    std::vector<TokenId>(truth.end() - kTokens, truth.end()));
        }
      }
    }
  }
}

TEST_P(Lossless, CacheEqualsAPrefillOfTheCommittedTokensUntilTheContextIsFull) {
  const std::vector<TokenId> prompt = prompts().front();
  const RigOptions options{.length = 6, .capacity = 52};
  const int room = options.capacity - static_cast<int>(prompt.size());
  const std::vector<TokenId> truth = plain_rig().plain(prompt, room, options);
  for (const std::string& kind : kinds()) {
    for (const int length : small() ? std::vector{63} : std::vector{6, 63, kAuto}) {
      SCOPED_TRACE(kind + " of length " + std::to_string(length));
      RigOptions longer = options;
      longer.length = length;
      Engine engine = rig().engine(rig().any_drafter(kind, truth, longer), longer);
      begin(engine, prompt);
      while (engine.room() > 0) {
        checked_step(engine, 1000);
        rig().expect_true_cache(engine);
      }
      EXPECT_EQ(std::vector<TokenId>(engine.context().tokens().begin(), engine.context().tokens().end()), truth);
    }
  }
}

TEST_P(Lossless, HybridDraftsFromBothSources) {
  const std::vector<TokenId> prompt = prompts().front();
  const std::vector<TokenId> truth = plain_rig().plain(prompt, 60);
  for (const int length : {8, kAuto}) {
    Engine engine = rig().engine(rig().drafter("hybrid"), {.length = length});
    EXPECT_EQ(run(engine, prompt, 60), truth);
    const auto& by_source = engine.metrics().by_source;
    EXPECT_GT(by_source[static_cast<int>(DraftSource::ngram)].accepted, 0) << length;
    EXPECT_GT(by_source[static_cast<int>(DraftSource::model)].accepted, 0) << length;
  }
}

TEST_P(Lossless, DraftCacheEqualsAPrefillOfTheTokensItClaims) {
  const std::vector<TokenId> prompt = prompts().back();
  for (const std::string kind : {"model", "self"}) {
    Engine engine = rig().engine(rig().drafter(kind), {.length = 5});
    begin(engine, prompt);
    auto& drafter = dynamic_cast<ModelDrafter&>(engine.drafter());
    Transformer& model = kind == std::string("self") ? rig().target() : rig().draft();
    for (int i = 0; i < (small() ? 2 : 8); ++i) {
      const int committed = engine.context().size();
      checked_step(engine, 1000);
      const std::span<const TokenId> held = drafter.cached();
      ASSERT_EQ(drafter.cache().size(), static_cast<int>(held.size()));
      ASSERT_GE(static_cast<int>(held.size()), committed);
      EXPECT_TRUE(std::equal(held.begin(), held.begin() + committed, engine.context().tokens().begin()));
      EXPECT_EQ(Rig::layers(drafter.cache(), model.spec().layers), rig().prefilled(model, held, 96));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Lossless, ::testing::ValuesIn(places()),
                         [](const auto& info) { return info.param.name(); });

TEST(Engine, DraftsDoAgreeAndDisagree) {  // or the tests above would show little
  const std::vector<TokenId> prompt = prompts().front();
  for (const std::string& backend : backends()) {
    Rig& rig = Rig::shared(backend);
    const std::vector<TokenId> truth = rig.plain(prompt, 60);
    for (const std::string kind : {"model", "cheap-model", "recycle", "random-tree"}) {
      Engine engine = rig.engine(rig.any_drafter(kind, truth), {.length = 8});
      run(engine, prompt, 60);
      EXPECT_GT(engine.metrics().total.accepted, 5) << backend << ' ' << kind;
      EXPECT_LT(engine.metrics().total.accepted, engine.metrics().total.tested) << backend << ' ' << kind;
    }
  }
}

TEST(Engine, DraftCachesOfAnyTypeLeaveTheTextAlone) {  // B35
  const std::vector<TokenId> prompt = prompts().back();
  for (const std::string& backend : backends()) {
    Rig& rig = Rig::shared(backend, 1, KvType::q8_0);
    const std::vector<TokenId> truth = rig.plain(prompt, 40);
    for (const KvType kv : {KvType::f32, KvType::f16, KvType::q8_0}) {
      const RigOptions options{.draft_kv = kv};
      Engine engine = rig.engine(rig.drafter("self", options), options);
      EXPECT_EQ(run(engine, prompt, 40), truth) << backend << ' ' << name_of(kv);
      EXPECT_EQ(dynamic_cast<ModelDrafter&>(engine.drafter()).cache().type(), kv);
      EXPECT_EQ(engine.cache().type(), KvType::q8_0);
      EXPECT_GT(engine.metrics().total.accepted, 5) << backend << ' ' << name_of(kv);
    }
  }
}

TEST(Engine, ChunksOfThePrefillChangeNothing) {
  const std::vector<TokenId> prompt = random_prompt(9, 40);
  for (const std::string& backend : backends()) {
    Rig& rig = Rig::shared(backend);
    const std::vector<TokenId> whole = rig.plain(prompt, 12, {.prefill_chunk = 64});
    for (const int chunk : {1, 3, 39, 40, 41}) EXPECT_EQ(rig.plain(prompt, 12, {.prefill_chunk = chunk}), whole);
  }
}

TEST(Engine, RepeatedPromptPrefillsItsLastIdAlone) {  // B34
  Rig& rig = Rig::shared();
  const std::vector<TokenId> prompt = random_prompt(6, 20);
  const std::vector<TokenId> truth = rig.plain(prompt, 10);
  Engine engine = rig.engine(rig.drafter("model"));
  EXPECT_EQ(run(engine, prompt, 10), truth);
  EXPECT_EQ(engine.start(prompt), 19);
  EXPECT_EQ(run(engine, prompt, 10), truth);

  const std::vector<TokenId> prefix(prompt.begin(), prompt.begin() + 12);
  EXPECT_EQ(engine.start(prefix), 11);
  EXPECT_EQ(run(engine, prefix, 10), rig.plain(prefix, 10));
  EXPECT_EQ(engine.start(random_prompt(7, 20)), 0);
  EXPECT_EQ(run(engine, prompt, 10), truth);
}

TEST(Engine, NextTurnKeepsPromptAndAnswer) {
  Rig& rig = Rig::shared();
  const std::vector<TokenId> prompt = random_prompt(8, 10);
  for (const std::string& kind : Rig::kinds()) {
    std::vector<TokenId> turn = rig.plain(prompt, 12);
    Engine engine = rig.engine(rig.any_drafter(kind, turn));
    run(engine, prompt, 12);
    const std::vector<TokenId> more = random_prompt(80, 6);
    turn.insert(turn.end(), more.begin(), more.end());
    EXPECT_EQ(engine.start(turn), 21) << kind;  // all but the pending token
    EXPECT_EQ(run(engine, turn, 12), rig.plain(turn, 12)) << kind;
  }
}

TEST(Engine, ResetForgetsTheSequence) {
  Rig& rig = Rig::shared();
  const std::vector<TokenId> prompt = random_prompt(8, 10);
  Engine engine = rig.engine(rig.drafter("ngram"));
  const std::vector<TokenId> first = run(engine, prompt, 12);
  engine.reset();
  EXPECT_EQ(engine.context().size(), 0);
  EXPECT_EQ(engine.start(prompt), 0);
  EXPECT_EQ(run(engine, prompt, 12), first);
}

TEST(Engine, PromptThatLeavesNoRoomIsRefusedWithBothLengths) {  // B56
  Rig& rig = Rig::shared();
  Engine engine = rig.engine(rig.drafter("none"), {.capacity = 32});
  EXPECT_THROW(engine.start({}), Error);
  for (const int length : {32, 33, 500}) {
    try {
      engine.start(random_prompt(1, length));
      FAIL() << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      const std::string text = error.what();
      EXPECT_NE(text.find(std::to_string(length)), std::string::npos) << text;
      EXPECT_NE(text.find("32"), std::string::npos) << text;
    }
  }
  begin(engine, random_prompt(1, 31));  // the engine still works
  EXPECT_EQ(engine.room(), 0);
}

TEST(Engine, SmallDraftContextStopsDraftingWithOneWarning) {  // B29
  Rig& rig = Rig::shared();
  for (const auto& [prompt_length, draft_context] : {std::pair{10, 32}, {40, 32}, {60, 64}}) {
    const std::vector<TokenId> prompt = random_prompt(11, prompt_length);
    const RigOptions options{.length = 16, .capacity = 64};
    const int room = options.capacity - prompt_length;
    Engine engine = rig.engine(rig.drafter("model", options, draft_context), options);
    EXPECT_EQ(run(engine, prompt, room), rig.plain(prompt, room, options));
    EXPECT_EQ(engine.drafter().take_warning().empty(), draft_context == 64);
    EXPECT_EQ(engine.drafter().take_warning(), "");
  }
}

// Throws once at a given call, as a row of NaN would make the sampler do; the context stays as the rules promise.
class FailingVerifier final : public Verifier {
 public:
  explicit FailingVerifier(int call) : call_(call) {}
  Verdict verify(const TokenTree& tree, const Logits& logits, Sampler& sampler, Context& context) override {
    if (call_-- == 0) fail(ErrorKind::numeric, "logits at position {}", context.position());
    return rule_->verify(tree, logits, sampler, context);
  }
  std::string_view name() const override { return "failing"; }
  bool lossless() const override { return true; }

 private:
  int call_;
  std::unique_ptr<Verifier> rule_ = make_verifier("rejection");
};

TEST(Engine, FailedStepCommitsNothingAndCanBeRepeated) {
  Rig& rig = Rig::shared();
  const std::vector<TokenId> prompt = random_prompt(12, 10);
  const std::vector<TokenId> truth = rig.plain(prompt, 20);
  Engine engine = rig.engine(oracle(truth), {}, std::make_unique<FailingVerifier>(2));
  begin(engine, prompt);
  checked_step(engine, 100);
  const int committed = engine.context().size();
  EXPECT_THROW(engine.step(100), Error);
  EXPECT_EQ(engine.context().size(), committed);
  rig.expect_true_cache(engine);
  while (engine.context().size() < static_cast<int>(truth.size())) {
    checked_step(engine, static_cast<int>(truth.size()) - engine.context().size());
  }
  EXPECT_TRUE(std::equal(truth.begin(), truth.end(), engine.context().tokens().begin()));
}

TEST(Engine, MeasuringOneRowLeavesTheSequenceAlone) {
  Rig& rig = Rig::shared();
  const std::vector<TokenId> prompt = random_prompt(13, 10);
  Engine engine = rig.engine(rig.drafter("model"));
  begin(engine, prompt);
  EXPECT_GT(engine.measure_single_row(), 0);
  rig.expect_true_cache(engine);
  for (int done = 1; done < 20;) done += checked_step(engine, 20 - done);
  const std::vector<TokenId> truth = rig.plain(prompt, 20);
  EXPECT_TRUE(std::equal(truth.begin(), truth.end(), engine.context().tokens().begin()));
}

}  // namespace
}  // namespace tandem::test
