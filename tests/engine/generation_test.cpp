// Where an answer ends, what is cut behind its end, and the state that is left for the next turn.
#include "src/engine/generation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>

#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

struct Answer {
  GenerationResult result;
  std::string streamed;
};

// A prompt, and its plain answer: `truth` is both together.
struct Case {
  std::vector<TokenId> prompt, truth;
  int prompt_size() const { return static_cast<int>(prompt.size()); }
  TokenId token(int i) const { return truth[prompt.size() + i]; }  // of the answer
  std::vector<TokenId> answer(int count) const {
    return {truth.begin() + prompt_size(), truth.begin() + prompt_size() + count};
  }
};

class GenerationTest : public ::testing::TestWithParam<std::string> {
 protected:
  Rig& rig() { return Rig::shared(GetParam()); }

  Answer run(Engine& engine, const std::vector<TokenId>& prompt, StopRules rules) {
    Generation generation(engine, *tokenizer_, prompt, std::move(rules));
    while (generation.prefill()) continue;
    std::string streamed;
    for (bool more = true; more;) {
      more = generation.advance();
      streamed += generation.take_text();
    }
    EXPECT_FALSE(generation.advance());
    EXPECT_EQ(streamed, generation.result().text);
    expect_consistent(engine, generation.result(), prompt);
    return {generation.result(), streamed};
  }

  // Whatever the reason: ids, counts and the engine's context say the same.
  void expect_consistent(const Engine& engine, const GenerationResult& r, const std::vector<TokenId>& prompt) {
    const int generated = static_cast<int>(r.ids.size());
    EXPECT_EQ(r.metrics.generated, generated);
    if (generated > 0) {
      EXPECT_EQ(generated, 1 + r.metrics.total.accepted + r.metrics.steps - r.metrics.cut);
      std::vector<TokenId> all = prompt;
      all.insert(all.end(), r.ids.begin(), r.ids.end());
      EXPECT_EQ(std::vector<TokenId>(engine.context().tokens().begin(), engine.context().tokens().end()), all);
      EXPECT_LE(engine.cache().size(), engine.context().size());
      EXPECT_GE(engine.cache().size(), engine.context().size() - 1);
    }
    EXPECT_EQ(r.ttft_seconds.has_value(), generated > 0);
    EXPECT_EQ(r.tpot_seconds.has_value(), generated > 1);
  }

  // An answer that begins with `distinct` different tokens of text, so that each is a stop that was not met before.
  const Case& varied(int distinct = 10, int length = 24) {
    static std::map<std::string, Case> cases;
    Case& found = cases[GetParam()];
    for (std::uint64_t seed = 100; found.truth.empty(); ++seed) {
      if (seed == 400) throw std::runtime_error("no prompt gives a varied answer");
      const std::vector<TokenId> prompt = random_prompt(seed, 8);
      const std::vector<TokenId> truth = rig().plain(prompt, length);
      const std::set<TokenId> first(truth.begin() + 8, truth.begin() + 8 + distinct);
      if (static_cast<int>(first.size()) == distinct && *first.rbegin() < kWords) found = {prompt, truth};
    }
    return found;
  }

  std::string text(const std::vector<TokenId>& ids) const { return tokenizer_->decode(ids); }

  std::unique_ptr<Tokenizer> tokenizer_ = make_tokenizer(tiny_vocabulary(), "tiny");
};

TEST_P(GenerationTest, MaxTokensIsExactForEveryDraftLengthAndCap) {  // B23
  const Case& c = varied();
  for (int length = 1; length <= 16; ++length) {
    Engine engine = rig().engine(oracle(c.truth), {.length = length});
    for (int cap = 1; cap <= 20; ++cap) {
      const Answer a = run(engine, c.prompt, {.max_tokens = cap});
      EXPECT_EQ(a.result.ids, c.answer(cap));
      EXPECT_EQ(a.result.stop_reason, StopReason::length);
      EXPECT_EQ(a.result.metrics.cut, 0);
      EXPECT_EQ(a.result.text, text(c.answer(cap)));
    }
  }
}

TEST_P(GenerationTest, EndIdInsideAnAcceptedBlockCutsWhatIsBehind) {  // B22
  const Case& c = varied();
  for (const std::string& kind : Rig::kinds()) {
    SCOPED_TRACE(kind);
    for (const int stop : {0, 1, 3, 7}) {  // place of the end id in the answer
      Engine engine = rig().engine(rig().any_drafter(kind, c.truth, {.length = 8}), {.length = 8});
      const Answer a = run(engine, c.prompt, {.end_ids = {c.token(stop)}, .max_tokens = 20});
      EXPECT_EQ(a.result.ids, c.answer(stop + 1));
      EXPECT_EQ(a.result.stop_reason, StopReason::stop);
      EXPECT_EQ(a.result.text, text(c.answer(stop)));
      if (kind == "oracle" && stop > 0) {
        EXPECT_EQ(a.result.metrics.cut, 9 - stop);
      }

      std::vector<TokenId> turn = c.prompt;  // the second turn prefills its own ids and at most the pending one
      turn.insert(turn.end(), a.result.ids.begin(), a.result.ids.end());
      const int known = static_cast<int>(turn.size());
      const std::vector<TokenId> more = random_prompt(200, 5);
      turn.insert(turn.end(), more.begin(), more.end());
      const int pending = a.result.metrics.cut > 0 ? 0 : 1;
      const Answer second = run(engine, turn, {.max_tokens = 10});
      EXPECT_EQ(second.result.cached_tokens, known - pending);
      const std::vector<TokenId> truth = rig().plain(turn, 10);
      EXPECT_EQ(second.result.ids, std::vector<TokenId>(truth.begin() + turn.size(), truth.end()));
    }
  }
}

TEST_P(GenerationTest, StopStringInsideAnAcceptedBlockWinsOverMaxTokens) {  // B23
  const Case& c = varied();
  const std::string stop = text({c.token(2)});
  if (text(c.answer(2)).find(stop) != std::string::npos) GTEST_FAIL() << "the stop is met too early: " << stop;
  Engine engine = rig().engine(oracle(c.truth), {.length = 8});
  const Answer a = run(engine, c.prompt, {.strings = {stop}, .max_tokens = 5});
  EXPECT_EQ(a.result.ids, c.answer(3));
  EXPECT_EQ(a.result.text, text(c.answer(2)));
  EXPECT_EQ(a.result.stop_reason, StopReason::stop);
  EXPECT_EQ(a.result.metrics.cut, 2);  // max_tokens leaves four in the step, of which two stand

  const Answer both = run(engine, c.prompt, {.strings = {stop}, .max_tokens = 3});
  EXPECT_EQ(both.result.stop_reason, StopReason::stop);
  EXPECT_EQ(both.result.ids, c.answer(3));
}

TEST_P(GenerationTest, StopBehindMaxTokensIsNotMet) {  // B23
  const Case& c = varied();
  Engine engine = rig().engine(oracle(c.truth), {.length = 8});
  const Answer a = run(engine, c.prompt, {.end_ids = {c.token(5)}, .max_tokens = 5});
  EXPECT_EQ(a.result.ids, c.answer(5));
  EXPECT_EQ(a.result.stop_reason, StopReason::length);
  EXPECT_EQ(a.result.text, text(c.answer(5)));
}

TEST_P(GenerationTest, StopStringOverTokenBordersLeavesItsFirstPartOut) {
  const Case& c = varied();
  const std::string joined = text({c.token(3), c.token(4), c.token(5)});
  const std::size_t from = text(c.answer(3)).size();
  const std::size_t first = text({c.token(3)}).size();
  const std::string stop = joined.substr(first - 1, joined.size() - first + 1 - (text({c.token(5)}).size() - 1));
  ASSERT_EQ(text(c.answer(6)).find(stop), from + first - 1) << stop;
  for (const std::string& kind : Rig::kinds()) {
    Engine engine = rig().engine(rig().any_drafter(kind, c.truth, {.length = 8}), {.length = 8});
    const Answer a = run(engine, c.prompt, {.strings = {stop, "never"}, .max_tokens = 20});
    EXPECT_EQ(a.result.text, text(c.answer(6)).substr(0, from + first - 1)) << kind;
    EXPECT_EQ(a.result.ids, c.answer(6)) << kind;
    EXPECT_EQ(a.result.stop_reason, StopReason::stop) << kind;
  }
}

// Ids, text and reason of plain decoding, for every length, whether the text is taken as it comes or not.
TEST_P(GenerationTest, StopsGiveOneTextForEveryDraftLengthAndReader) {
  const Case& c = varied();
  const std::string answer = text(c.answer(20));
  const std::string third = text({c.token(2)}), sixth = text({c.token(5)}), pair = text({c.token(5), c.token(6)});
  const std::size_t middle = text(c.answer(9)).size();
  std::vector<StopRules> rules;
  for (std::vector<std::string> strings :
       std::vector<std::vector<std::string>>{{sixth, third},                           // two places
                                             {pair, sixth},                            // one begins the other
                                             {answer.substr(middle - 2, 4), "never"},  // over a border
                                             {answer.substr(middle - 2, 4), answer.substr(middle, 1)},  // overlapping
                                             {answer.substr(middle, 1),
                                              answer.substr(middle - 1, 1)}})  // inside a token or two
  {
    rules.push_back({.strings = strings, .max_tokens = 20});
    std::reverse(strings.begin(), strings.end());  // the order of the list must not matter
    rules.push_back({.strings = strings, .max_tokens = 20});
  }
  rules.push_back({.end_ids = {c.token(7)}, .strings = {text({c.token(7)})}, .max_tokens = 20});  // the end id first
  rules.push_back({.end_ids = {c.token(9)}, .strings = {sixth}, .max_tokens = 6});
  rules.push_back({.end_ids = {c.token(9)}, .max_tokens = 7});
  std::set<std::string> texts;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    Engine plain = rig().engine(rig().drafter("none"));
    const GenerationResult truth = run(plain, c.prompt, rules[i]).result;
    if (i % 2 == 1 && i < 10) {
      EXPECT_TRUE(texts.contains(truth.text)) << "the order of the list matters: rule " << i;
    }
    texts.insert(truth.text);
    for (const std::string kind : {"ngram", "model", "oracle", "random-tree"}) {
      for (const int length : {0, 1, 4, 16}) {
        SCOPED_TRACE(kind + " of length " + std::to_string(length) + ", rule " + std::to_string(i));
        RigOptions options{.length = length};
        options.logprobs = 2;
        Engine engine = rig().engine(rig().any_drafter(kind, c.truth, options), options);
        const GenerationResult streamed = run(engine, c.prompt, rules[i]).result;
        EXPECT_EQ(streamed.ids, truth.ids);
        EXPECT_EQ(streamed.text, truth.text);
        EXPECT_EQ(streamed.stop_reason, truth.stop_reason);
        ASSERT_EQ(streamed.logprobs.size(), truth.ids.size());  // cut with the tokens after a stop
        for (std::size_t j = 0; j < truth.ids.size(); ++j) EXPECT_EQ(streamed.logprobs[j].drawn.id, truth.ids[j]);
        Generation silent(engine, *tokenizer_, c.prompt, rules[i]);
        while (silent.advance()) continue;
        EXPECT_EQ(silent.result().ids, truth.ids);
        EXPECT_EQ(silent.result().text, truth.text);
      }
    }
  }
  EXPECT_GE(texts.size(), 5u);
}

TEST_P(GenerationTest, ControlTokensGiveNoText) {
  const Case& c = varied();
  std::vector<TokenId> truth = c.truth;
  Engine engine = rig().engine(oracle(truth));
  const Answer a = run(engine, c.prompt, {.end_ids = {105, 106, 107}, .max_tokens = 24});
  std::vector<TokenId> shown = a.result.ids;
  if (a.result.stop_reason == StopReason::stop) shown.pop_back();
  EXPECT_EQ(a.result.text, text(shown));
}

TEST_P(GenerationTest, FullContextEndsTheAnswer) {  // B56
  const RigOptions options{.length = 8, .capacity = 32};
  const std::vector<TokenId> longest = random_prompt(21, 31);
  Engine engine = rig().engine(rig().drafter("self", options), options);
  const Answer one = run(engine, longest, {.max_tokens = 50});
  EXPECT_EQ(one.result.ids.size(), 1u);
  EXPECT_EQ(one.result.stop_reason, StopReason::context);
  EXPECT_EQ(run(engine, longest, {.max_tokens = 1}).result.stop_reason, StopReason::length);

  for (const std::string& kind : Rig::kinds()) {
    const std::vector<TokenId> prompt = random_prompt(22, 20);
    const std::vector<TokenId> truth = rig().plain(prompt, 12, options);
    Engine filled = rig().engine(rig().any_drafter(kind, truth, options), options);
    const Answer a = run(filled, prompt, {.max_tokens = 50});
    EXPECT_EQ(a.result.ids, std::vector<TokenId>(truth.begin() + 20, truth.end())) << kind;
    EXPECT_EQ(a.result.stop_reason, StopReason::context) << kind;
    EXPECT_EQ(run(filled, prompt, {.max_tokens = 12}).result.stop_reason, StopReason::length) << kind;
  }
  EXPECT_THROW(Generation(engine, *tokenizer_, random_prompt(1, 32), {}), Error);
}

TEST_P(GenerationTest, TimeLimitEndsTheAnswerBetweenSteps) {
  const Case& c = varied();
  constexpr double kLimit = 0.25;
  const double start = now_seconds();
  const auto wait = [start] {
    while (now_seconds() < start + kLimit + 0.01) continue;
  };
  Engine engine = rig().engine(oracle(c.truth, wait), {.length = 1});
  const Answer a = run(engine, c.prompt, {.max_tokens = 20, .time_limit_seconds = kLimit});
  EXPECT_EQ(a.result.stop_reason, StopReason::time);
  EXPECT_LE(a.result.ids.size(), 3u);
  EXPECT_EQ(a.result.ids, c.answer(static_cast<int>(a.result.ids.size())));

  const Answer none = run(engine, c.prompt, {.max_tokens = 20, .time_limit_seconds = 1e-9});
  EXPECT_EQ(none.result.stop_reason, StopReason::time);
  EXPECT_TRUE(none.result.ids.empty());
  EXPECT_LT(engine.cache().size(), c.prompt_size() + 3);
}

TEST_P(GenerationTest, CancelBeforePrefillGivesAnEmptyAnswer) {
  const Case& c = varied();
  const std::atomic<bool> cancel = true;
  Engine engine = rig().engine(oracle(c.truth));
  const Answer a = run(engine, c.prompt, {.cancel = &cancel});
  EXPECT_EQ(a.result.stop_reason, StopReason::cancel);
  EXPECT_TRUE(a.result.ids.empty());
  EXPECT_EQ(a.result.text, "");
  EXPECT_EQ(engine.cache().size(), 0);
  EXPECT_EQ(run(engine, c.prompt, {.max_tokens = 6}).result.ids, c.answer(6));
}

TEST_P(GenerationTest, CancelBetweenStepsKeepsWhatWasCommitted) {
  const Case& c = varied();
  std::atomic<bool> cancel = false;
  int proposals = 0;
  const auto third = [&] { cancel = ++proposals == 3; };
  Engine engine = rig().engine(oracle(c.truth, third), {.length = 1});
  const Answer a = run(engine, c.prompt, {.max_tokens = 20, .cancel = &cancel});
  EXPECT_EQ(a.result.stop_reason, StopReason::cancel);
  EXPECT_EQ(a.result.ids, c.answer(7));  // the first token and three steps of two
  EXPECT_EQ(a.result.metrics.steps, 3);
}

TEST_P(GenerationTest, FirstReasonInTheFixedOrderIsGiven) {
  const Case& c = varied();
  const std::atomic<bool> cancel = true;
  Engine engine = rig().engine(oracle(c.truth));
  const Answer a = run(engine, c.prompt, {.time_limit_seconds = 1e-9, .cancel = &cancel});
  EXPECT_EQ(a.result.stop_reason, StopReason::time);
}

TEST_P(GenerationTest, TextIsCompleteWithoutTakingIt) {
  const Case& c = varied();
  Engine engine = rig().engine(oracle(c.truth));
  Generation generation(engine, *tokenizer_, c.prompt, {.end_ids = {c.token(6)}});
  while (generation.advance()) continue;
  EXPECT_EQ(generation.result().text, text(c.answer(6)));
  EXPECT_EQ(generation.take_text(), text(c.answer(6)));
}

TEST_P(GenerationTest, StagesAddUpToTheWall) {  // B43, B44
  const Case& c = varied();
  Engine engine = rig().engine(rig().drafter("model"), {.length = 3});
  const GenerationResult r = run(engine, c.prompt, {.max_tokens = 20}).result;
  const StageSeconds& s = r.metrics.seconds;
  for (const double stage : {s.prefill, s.draft, s.verify, s.sample}) EXPECT_GT(stage, 0);
  EXPECT_GE(s.rollback, 0);
  EXPECT_LE(s.prefill + s.draft + s.verify + s.sample + s.rollback, r.wall_seconds);
  EXPECT_LE(s.prefill, *r.ttft_seconds);
  EXPECT_NEAR(*r.ttft_seconds + 19 * *r.tpot_seconds, r.wall_seconds, 1e-9 * r.wall_seconds);
  EXPECT_NEAR(*r.decode_tokens_per_second * *r.tpot_seconds, 1, 1e-12);  // tokens, not steps

  std::int64_t passes = 0;
  DraftCounts by_depth;
  for (const DraftCounts& depth : r.metrics.by_depth) by_depth.add(depth);
  for (const std::int64_t count : r.metrics.steps_by_rows) passes += count;
  EXPECT_EQ(passes, r.metrics.steps);
  EXPECT_EQ(by_depth.proposed, r.metrics.total.proposed);
  EXPECT_EQ(by_depth.tested, r.metrics.total.tested);
  EXPECT_EQ(by_depth.accepted, r.metrics.total.accepted);
  EXPECT_EQ(r.metrics.by_source[static_cast<int>(DraftSource::model)].proposed, r.metrics.total.proposed);
}

TEST_P(GenerationTest, TestedAndAcceptedAreCountedByPosition) {
  const Case& c = varied();
  Engine engine = rig().engine(wrong_after(2, c.truth), {.length = 4});
  const GenerationResult r = run(engine, c.prompt, {.max_tokens = 22}).result;  // 1 + 7 steps of 3
  ASSERT_EQ(r.metrics.steps, 7);
  const int last = 2;  // drafts of the last step, which has room for no more
  for (const auto& [depth, proposed, tested, accepted] :
       {std::array{1, 7, 7, 7}, {2, 7, 7, 7}, {3, 6, 6, 0}, {4, 6, 0, 0}, {5, 0, 0, 0}}) {
    const DraftCounts& counts = r.metrics.by_depth[depth - 1];
    EXPECT_EQ(counts.proposed, proposed) << depth;
    EXPECT_EQ(counts.tested, tested) << depth;
    EXPECT_EQ(counts.accepted, accepted) << depth;
  }
  EXPECT_EQ(r.metrics.total.proposed, 6 * 4 + last);
}

INSTANTIATE_TEST_SUITE_P(Backends, GenerationTest, ::testing::ValuesIn(backends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::test
