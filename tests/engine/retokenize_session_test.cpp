// A configured draft with another vocabulary, from files to answers, on tiny models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/engine/session.h"
#include "tests/engine/session_models.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RetokenizeSession : public ::testing::Test, protected SessionModels {
 protected:
  RetokenizeSession() {
    TinyOptions options = small_options();
    options.context = 1024;
    target_ = write_tiny_model(folder_, "target.gguf", options);
    twin_ = write_tiny_model(folder_, "twin.gguf", options);
    options.vocabulary = other_tiny_vocabulary();
    foreign_ = write_tiny_model(folder_, "foreign.gguf", options);
  }

  Config config(const std::vector<std::string>& settings) const {
    Options options = Options::from_text(
        "target: {context: 128}\ndraft: {length: 4}\nsampling: {temperature: 0, seed: 5}\n", "test.yaml");
    options.set("target.model=" + target_);
    options.set("stop.max_tokens=40");
    for (const std::string& setting : settings) options.set(setting);
    return read_config(std::move(options));
  }
  std::vector<std::string> retokenize(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"draft.kind=model", "draft.model=" + foreign_, "draft.retokenize=true"});
    return more;
  }
  struct Answer {
    std::vector<TokenId> ids;
    std::int64_t proposed;
  };
  static Answer answer(Session& session, const std::string& prompt = "the hat in the inn") {
    StopRules rules = session.stop_rules();
    rules.end_ids.clear();
    Generation generation(session.engine(), session.tokenizer(), session.encode_raw(prompt), rules);
    while (generation.advance()) continue;
    return {generation.result().ids, generation.result().metrics.total.proposed};
  }
  std::string refusal(const std::vector<std::string>& settings, ErrorKind kind) const {
    try {
      const Session session(config(settings));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return "accepted";
  }

  std::string twin_, foreign_;
};

TEST_F(RetokenizeSession, AnotherVocabularyNeedsTheSwitchAndTheSameOneRefusesIt) {
  EXPECT_THAT(refusal({"draft.kind=model", "draft.model=" + foreign_}, ErrorKind::model),
              AllOf(HasSubstr("foreign.gguf"), HasSubstr("draft.retokenize: true"), HasSubstr("id 0")));
  EXPECT_THAT(refusal({"draft.kind=model", "draft.model=" + twin_, "draft.retokenize=true"}, ErrorKind::config),
              AllOf(HasSubstr("draft.retokenize"), HasSubstr("twin.gguf"), HasSubstr("drafts better without")));
  EXPECT_EQ(refusal(retokenize(), ErrorKind::model), "accepted");
  EXPECT_EQ(refusal({"draft.kind=none", "draft.model=" + foreign_, "draft.retokenize=true"}, ErrorKind::model),
            "accepted");
}

TEST_F(RetokenizeSession, GivesThePlainAnswerInEverySetting) {
  Session plain(config({"draft.kind=none"}));
  const std::vector<TokenId> truth = answer(plain).ids;
  ASSERT_EQ(truth.size(), 40u);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{},
                                                                                    {"draft.kind=hybrid"},
                                                                                    {"draft.length=12"},
                                                                                    {"draft.length=auto"},
                                                                                    {"draft.quantize=q4_0"},
                                                                                    {"draft.head_rows=1"},
                                                                                    {"draft.head_rows=40"},
                                                                                    {"draft.kv_cache=f32"},
                                                                                    {"draft.context=32"},
                                                                                    {"verify.rule=block"},
                                                                                    {"verify.rule=coupled"}}) {
    Session drafted(config(retokenize(more)));
    const Answer result = answer(drafted);
    EXPECT_EQ(result.ids, truth) << ::testing::PrintToString(more);
    EXPECT_TRUE(drafted.lossless());
    if (more != std::vector<std::string>{"draft.length=auto"}) {
      EXPECT_GT(result.proposed, 10) << ::testing::PrintToString(more);
    }
    // A second prompt and the first again are as in a fresh process.
    Session fresh(config(retokenize(more)));
    if (more == std::vector<std::string>{"draft.length=auto"}) continue;  // learns from the clock
    const Answer other = answer(fresh, "an other hat");
    EXPECT_EQ(answer(drafted, "an other hat").ids, other.ids);
    const Answer again = answer(drafted);
    EXPECT_EQ(again.ids, truth);
    EXPECT_EQ(again.proposed, result.proposed) << ::testing::PrintToString(more);
  }
}

TEST_F(RetokenizeSession, ASeedGivesOneTextAtAnyTemperature) {
  for (const char* rule : {"rejection", "block", "coupled"}) {
    const std::vector<std::string> hot{"sampling.temperature=1.2", std::string("verify.rule=") + rule};
    Session first(config(retokenize(hot))), second(config(retokenize(hot)));
    answer(second, "an other hat");
    const Answer one = answer(first);
    EXPECT_EQ(answer(second).ids, one.ids) << rule;
    EXPECT_GT(one.proposed, 10);
    Session plain(config({"draft.kind=none", "sampling.temperature=1.2"}));
    if (std::string(rule) == "coupled") {
      EXPECT_EQ(one.ids, answer(plain).ids);
    }
  }
}

// The head's rows are the draft's own ids, and its end mark is always among them.
TEST_F(RetokenizeSession, HeadRowsAreTheDraftsOwnIds) {
  const std::string ranking = folder_.file("ranking.txt", "90\n103\n7\n102\n");
  std::vector<TokenId> kept;
  const Session::DrafterFactory keep = [&](const DrafterSetup& setup) {
    kept.assign(setup.model->head_tokens().begin(), setup.model->head_tokens().end());
    return make_drafter(setup);
  };
  const Vocabulary foreign = other_tiny_vocabulary();
  ASSERT_EQ(*foreign.eos, 0);
  const Session session(config(retokenize({"draft.head_rows=2", "draft.head_ranking=" + ranking})), false, keep);
  // 103 is a padding row, and so is passed over.
  EXPECT_EQ(foreign.size(), 103);
  EXPECT_THAT(kept, ::testing::ElementsAre(0, 7, 90, *foreign.bos));  // <|endoftext|> is an end mark too
}

TEST_F(RetokenizeSession, TheDraftsContextMayBeLargerThanTheTargets) {
  int context = 0;
  const Session::DrafterFactory probe = [&](const DrafterSetup& setup) {
    context = setup.context;
    return make_drafter(setup);
  };
  for (const auto& [settings, expected] : std::vector<std::pair<std::vector<std::string>, int>>{
           {{}, 128}, {{"draft.context=64"}, 64}, {{"draft.context=512"}, 512}}) {
    const Session session(config(retokenize(settings)), false, probe);
    EXPECT_EQ(context, expected);
  }
}

TEST_F(RetokenizeSession, AFullDraftContextIsSaidOnce) {  // B29
  Session plain(config({"draft.kind=none"})), drafted(config(retokenize({"draft.context=32"})));
  EXPECT_EQ(answer(drafted).ids, answer(plain).ids);
  EXPECT_THAT(drafted.engine().drafter().take_warning(), HasSubstr("draft context of 32 tokens is full"));
  EXPECT_EQ(answer(drafted).ids, answer(plain).ids);
  EXPECT_EQ(drafted.engine().drafter().take_warning(), "");
}

}  // namespace
}  // namespace tandem::test
