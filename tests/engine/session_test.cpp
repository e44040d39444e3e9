// A configured run from files to figures, on tiny models.
#include "src/engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "src/base/error.h"
#include "src/engine/report.h"
#include "tests/engine/session_models.h"
#include "tests/text/smollm2_template.h"

namespace tandem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class SessionTest : public ::testing::TestWithParam<bool>,
                    protected SessionModels {  // whether on the reference backend
 protected:
  SessionTest() {
    TinyOptions options = small_options();
    options.context = 8192;
    options.edit = [](std::string_view name, std::string& data) {  // greedy answers never draw a control token
      constexpr std::size_t kRowBytes = 34;
      if (name == "output.weight") std::fill_n(data.begin() + 105 * kRowBytes, 3 * kRowBytes, '\0');
    };
    target_ = write_tiny_model(folder_, "target.gguf", options);
    options.noise = 0.3;
    options.context = 300;
    short_draft_ = write_tiny_model(folder_, "short.gguf", options);
    options.context = 8192;
    draft_ = write_tiny_model(folder_, "draft.gguf", options);
  }

  Config config(const std::vector<std::string>& settings = {}) const {
    Options options = Options::from_text(
        "target: {context: 128}\ndraft: {length: 4}\nsampling: {temperature: 0, seed: 5}\n", "test.yaml");
    options.set("target.model=" + target_);
    options.set("runtime.prefill_chunk=16");
    options.set("stop.max_tokens=20");
    for (const std::string& setting : settings) options.set(setting);
    return read_config(std::move(options));
  }
  Session session(const std::vector<std::string>& settings = {}) const { return Session(config(settings), GetParam()); }

  std::string refusal(const std::vector<std::string>& settings) const {
    try {
      const Session session(config(settings), GetParam());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  static GenerationResult answer(Session& session, const std::string& prompt = "the hat in the inn") {
    Generation generation(session.engine(), session.tokenizer(), session.encode_raw(prompt), session.stop_rules());
    while (generation.advance()) continue;
    return generation.result();
  }

  std::string short_draft_;
};

void expect_finite(const Json& json, const std::string& place) {
  if (json.is_structured()) {
    for (const auto& [key, value] : json.items()) expect_finite(value, place + "." + key);
  } else if (json.is_number_float()) {
    EXPECT_TRUE(std::isfinite(json.get<double>())) << place;
  }
}

// The report, as a reader of its text gets it.
Json report(const GenerationResult& result, const Session& session) {
  Json json = to_json(result, session);
  json["settings"] = settings_json(session);
  expect_finite(json, "report");
  return Json::parse(json.dump());
}

TEST_P(SessionTest, EveryDrafterGivesThePlainAnswer) {
  Session plain = session({"draft.kind=none"});
  const GenerationResult truth = answer(plain);
  ASSERT_EQ(truth.ids.size(), 20u);
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{{"draft.kind=ngram"},
                                             {"draft.model=" + draft_},
                                             {"draft.model=" + draft_, "draft.length=9", "runtime.threads=2"},
                                             {"draft.model=" + draft_, "draft.length=auto"},
                                             {"draft.kind=ngram", "draft.length=auto"},
                                             {"draft.model=" + short_draft_, "draft.context=16"},
                                             {"draft.kind=recycle"},
                                             {"draft.kind=hybrid"},
                                             {"draft.kind=hybrid", "draft.length=auto"},
                                             {"draft.kind=ngram", "draft.corpus=" + folder_.path()},
                                             {"draft.model=" + draft_, "draft.corpus=" + folder_.path()},
                                             {"draft.model=" + draft_, "draft.quantize=q4_0", "draft.head_rows=64"},
                                             {"draft.model=" + draft_, "draft.quantize=q8_0"}}) {
    Session drafted = session(settings);
    EXPECT_EQ(answer(drafted).ids, truth.ids) << ::testing::PrintToString(settings);
    EXPECT_TRUE(drafted.lossless());
  }
}

// The tiny model's own answer as a document: drafts come from it, and only where the config asks for it.
TEST_P(SessionTest, CorpusIsDraftedFromAndReported) {
  Session plain = session({"draft.kind=none"});
  const GenerationResult truth = answer(plain);
  const std::string text = folder_.file("answer.txt", "the hat in the inn" + truth.text);
  Session drafted = session({"draft.kind=ngram", "draft.corpus=[" + text + ", " + draft_ + "]"});
  const GenerationResult result = answer(drafted);
  EXPECT_EQ(result.ids, truth.ids);
  EXPECT_GT(result.metrics.by_source[static_cast<int>(DraftSource::corpus)].accepted, 0);
  const Json json = report(result, drafted);
  EXPECT_EQ(json["by_source"]["corpus"]["accepted"],
            result.metrics.by_source[static_cast<int>(DraftSource::corpus)].accepted);
  EXPECT_EQ(json["settings"]["corpus"]["files"], 1);
  EXPECT_THAT(json["settings"]["corpus"]["skipped"][0], HasSubstr("draft.gguf (binary)"));
  EXPECT_THAT(drafted.warning(), HasSubstr("draft.corpus leaves out "));
  for (const char* kind : {"none", "recycle"}) {
    EXPECT_FALSE(session({std::string("draft.kind=") + kind, "draft.corpus=" + text}).corpus()) << kind;
  }
  EXPECT_EQ(session().warning(), "");
}

TEST_P(SessionTest, ATemplateOfAnotherVocabularyIsWarnedOf) {
  TinyOptions options = small_options();
  options.chat_template = kSmolLm2;
  const std::string fits = write_tiny_model(folder_, "fits.gguf", options);
  options.vocabulary = other_tiny_vocabulary();  // knows <|im_end|> alone
  const std::string strange = write_tiny_model(folder_, "strange.gguf", options);
  EXPECT_EQ(session({"target.model=" + fits}).warning(), "");
  EXPECT_EQ(session({"target.model=" + strange}).warning(),
            "strange.gguf: its chat template writes <|im_start|>, no single token of its vocabulary, which the model "
            "will read as plain text");
  EXPECT_EQ(session({"target.model=" + strange, "prompt.chat=false"}).warning(), "");
}

TEST_P(SessionTest, HeadKeepsTheRankedRowsAndTheEndTokens) {
  const std::string ranking = folder_.file("ranking.txt", "# most useful first\n40\n\n 7\n90\n");
  std::vector<TokenId> kept;
  const Session::DrafterFactory keep = [&](const DrafterSetup& setup) {
    kept.assign(setup.model->head_tokens().begin(), setup.model->head_tokens().end());
    return make_drafter(setup);
  };
  const auto head = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all{"draft.model=" + draft_};
    all.insert(all.end(), settings.begin(), settings.end());
    const Session session(config(all), GetParam(), keep);
    return kept;
  };
  EXPECT_THAT(head({"draft.head_rows=3", "draft.head_ranking=" + ranking}), ElementsAre(7, 40, 90, 105, 107));
  EXPECT_THAT(head({"draft.head_rows=2", "draft.head_ranking=" + ranking}), ElementsAre(7, 40, 105, 107));
  EXPECT_THAT(head({"draft.head_rows=5", "draft.head_ranking=" + ranking}), ElementsAre(0, 1, 7, 40, 90, 105, 107));
  EXPECT_THAT(head({"draft.head_rows=2"}), ElementsAre(0, 1, 105, 107));
  EXPECT_THAT(head({"draft.head_rows=2", "stop.token_ids=[50]"}), ElementsAre(0, 1, 50, 105, 107));
  EXPECT_THAT(head({"draft.head_rows=108"}), ElementsAre());
  EXPECT_THAT(head({}), ElementsAre());
}

TEST_P(SessionTest, RefusesARankingThatIsNone) {
  for (const auto& [text, says] : {std::pair{"", "expected one token id a line, got none"},
                                   {"5\n112\n", ":2: expected a token id in 0..111, got \"112\""},
                                   {"5\n-1\n", ":2: expected a token id in 0..111, got \"-1\""},
                                   {"5 6\n", ":1: expected a token id in 0..111, got \"5 6\""},
                                   {"# a\n5\n6\n5\n", ":4: expected each token id once, got 5 again"}}) {
    const std::string ranking = folder_.file("bad.txt", text);
    const std::string message =
        refusal({"draft.model=" + draft_, "draft.head_rows=5", "draft.head_ranking=" + ranking});
    EXPECT_THAT(message, HasSubstr("--set draft.head_ranking: ")) << text;
    EXPECT_THAT(message, HasSubstr(says)) << text;
  }
  EXPECT_THAT(
      refusal({"draft.model=" + draft_, "draft.head_rows=1", "sampling.logit_bias={0: -.inf, 105: -.inf, 107: -.inf}"}),
      HasSubstr("draft.head_rows: none of the 3 rows kept"));
}

// What is measured once is taken again, so that a seed gives one text with whatever the first run measured.
TEST_P(SessionTest, CostTableIsMeasuredOnceAndNamed) {
  const std::vector<std::string> settings{"draft.model=" + draft_, "draft.length=auto", "sampling.temperature=1"};
  Session first = session(settings);
  const Json measured = settings_json(first)["cost_table"];
  EXPECT_EQ(measured["origin"], "measured at load");
  EXPECT_EQ(measured["target"][0]["rows"], 1);
  EXPECT_GT(measured["target"][0]["seconds"], 0);
  EXPECT_EQ(measured["draft"].back()["rows"], 64);
  Session second = session(settings);
  const Json saved = settings_json(second)["cost_table"];
  EXPECT_EQ(saved["origin"], "saved");
  EXPECT_EQ(saved["target"], measured["target"]);
  EXPECT_EQ(saved["draft"], measured["draft"]);
  const GenerationResult a = answer(first), b = answer(second);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.metrics.total.proposed, b.metrics.total.proposed);
  EXPECT_EQ(answer(first).ids, a.ids) << "the second answer of a session is as the first";
  for (const std::string cheaper : {"draft.quantize=q4_0", "draft.head_rows=64"}) {
    std::vector<std::string> other = settings;
    other.push_back(cheaper);
    EXPECT_EQ(settings_json(session(other))["cost_table"]["origin"], "measured at load") << cheaper;
  }
  EXPECT_EQ(settings_json(session({"draft.kind=ngram", "draft.length=auto"}))["cost_table"]["draft"], Json::array());
  EXPECT_TRUE(settings_json(session({"draft.kind=none", "draft.length=auto"}))["cost_table"].is_null());
}

// An answer without passes of one row is judged by the table's shape and by its own passes, so that a table of another
// day, off by two here, does not count as a speed-up.
TEST_P(SessionTest, ExplanationGoesByTheTableAndTheAnswersOwnPasses) {
  const Session session = this->session({"draft.model=" + draft_, "draft.length=auto"});
  const PassCosts costs(session.costs()->target);
  GenerationResult r;
  Metrics& m = r.metrics;
  m.steps = m.steps_by_rows[5] = 10;
  m.generated = 41;
  m.total = {.proposed = 40, .tested = 35, .accepted = 30};
  m.seconds_by_rows[5] = 2 * 10 * costs.seconds(5);
  r.tpot_seconds = costs.seconds(1);
  EXPECT_THAT(explanation(r, session), HasSubstr("about 2.00x plain, estimated from T(rows), measured at load 20"));
  m.steps_by_rows[1] = 4;
  m.seconds_by_rows[1] = 4 * 3 * costs.seconds(1);
  EXPECT_THAT(explanation(r, session), HasSubstr("about 3.00x plain, estimated from passes of one row in this answer"));
  const Session fixed = this->session({"draft.model=" + draft_, "draft.length=4"});
  m.steps_by_rows[1] = 3;
  EXPECT_THAT(explanation(r, fixed), HasSubstr("estimated from passes of one row at load"));
}

// The drafter is told to draw with the target's noise, or a draft equal to the target would not always be right.
TEST_P(SessionTest, CoupledGivesThePlainAnswerOfTheSeed) {
  const std::vector<std::string> sampled{"sampling.temperature=1", "sampling.seed=9", "verify.rule=coupled"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), sampled.begin(), sampled.end());
    return session(more);
  };
  Session plain = with({"draft.kind=none"}), self = with({"draft.model=" + target_}),
          other = with({"draft.model=" + draft_});
  const GenerationResult truth = answer(plain), same = answer(self), drafted = answer(other);
  EXPECT_EQ(same.ids, truth.ids);
  EXPECT_EQ(drafted.ids, truth.ids);
  EXPECT_GT(same.metrics.total.accepted, 10);
  EXPECT_EQ(same.metrics.total.accepted, same.metrics.total.proposed);
  EXPECT_TRUE(self.lossless());
}

TEST_P(SessionTest, ALossyRuleIsNamedInEveryReport) {
  Session lossy = session({"draft.kind=ngram", "verify.rule=typical", "verify.lossy=true"});
  const GenerationResult result = answer(lossy);
  EXPECT_FALSE(lossy.lossless());
  const Json json = report(result, lossy);
  EXPECT_EQ(json["settings"]["lossless"], false);
  EXPECT_EQ(json["settings"]["verify_rule"], "typical");
  EXPECT_THAT(human_summary(result, lossy), HasSubstr("typical is lossy"));
  Session lossless = session({"draft.kind=ngram", "verify.lossy=true"});
  EXPECT_THAT(human_summary(answer(lossless), lossless), ::testing::Not(HasSubstr("lossy")));
}

TEST_P(SessionTest, ReportHasEveryKeyOfTheContract) {
  Session drafted = session({"draft.model=" + draft_});
  const GenerationResult result = answer(drafted);
  const Json json = report(result, drafted);
  for (const char* key : {"ids", "text", "stop_reason", "prompt_tokens", "generated_tokens", "ttft_seconds",
                          "tpot_seconds", "decode_tokens_per_second", "steps", "proposed", "tested", "accepted", "cut",
                          "accepted_by_position", "seconds", "settings"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key : {"load", "prefill", "draft", "verify", "sample", "rollback", "other"}) {
    ASSERT_TRUE(json["seconds"].contains(key)) << key;
    EXPECT_GE(json["seconds"][key], 0) << key;
  }
  EXPECT_EQ(json["ids"], Json(result.ids));
  EXPECT_EQ(json["stop_reason"], "length");
  EXPECT_EQ(json["generated_tokens"], 20);
  EXPECT_EQ(json["generated_tokens"], 1 + json["accepted"].get<int>() + json["steps"].get<int>());
  int accepted = 0;
  for (const Json& count : json["accepted_by_position"]) accepted += count.get<int>();
  EXPECT_EQ(json["accepted"], accepted);
  EXPECT_EQ(json["settings"]["seed"], 5);
  EXPECT_EQ(json["settings"]["draft_kind"], "hybrid");
  EXPECT_EQ(json["settings"]["target"]["sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(json["settings"]["lossless"], true);
}

TEST_P(SessionTest, LoadIsInNoOtherFigure) {  // B44
  Session drafted = session({"draft.model=" + draft_});
  const GenerationResult result = answer(drafted);
  const Json seconds = report(result, drafted)["seconds"];
  EXPECT_GT(seconds["load"], 0);
  EXPECT_LE(*result.ttft_seconds, result.wall_seconds);
  double stages = 0;
  for (const char* key : {"prefill", "draft", "verify", "sample", "rollback", "other"}) {
    stages += seconds[key].get<double>();
  }
  EXPECT_NEAR(stages, result.wall_seconds, 1e-9);
}

TEST_P(SessionTest, RatesAreNullWhenNothingWasTimed) {  // B44
  Session plain = session({"draft.kind=none", "stop.max_tokens=1"});
  const Json one = report(answer(plain), plain);
  EXPECT_TRUE(one["ttft_seconds"].is_number());
  for (const char* key : {"tpot_seconds", "decode_tokens_per_second", "acceptance_rate", "mean_accepted_length"}) {
    EXPECT_TRUE(one[key].is_null()) << key;
  }
  EXPECT_EQ(one["accepted_by_position"], Json::array());

  Session stopped = session({"stop.time_limit_seconds=1e-9"});
  const GenerationResult nothing = answer(stopped);
  const Json none = report(nothing, stopped);
  EXPECT_EQ(none["generated_tokens"], 0);
  EXPECT_EQ(none["stop_reason"], "time");
  EXPECT_TRUE(none["ttft_seconds"].is_null());
  for (Session* each : {&plain, &stopped}) {
    expect_finite(totals_json({}, *each), "totals");
    EXPECT_TRUE(totals_json({nothing}, *each)["decode_tokens_per_second"].is_null());
  }
  for (const GenerationResult& result : {answer(plain), nothing}) {
    const std::string summary = human_summary(result, plain);
    for (const char* word : {"nan", "inf"}) EXPECT_THAT(summary, ::testing::Not(HasSubstr(word)));
  }
}

TEST_P(SessionTest, CachedPromptIsReported) {
  Session plain = session({"draft.kind=none"});
  answer(plain);
  const Json again = report(answer(plain), plain);
  EXPECT_EQ(again["cached_prompt_tokens"], again["prompt_tokens"].get<int>() - 1);
}

TEST_P(SessionTest, TotalsAreSums) {
  Session drafted = session({"draft.model=" + draft_});
  std::vector<GenerationResult> results;
  for (const char* prompt : {"a", "the thin hen", "in an inn"}) {
    drafted.engine().reset();
    results.push_back(answer(drafted, prompt));
  }
  const Json totals = totals_json(results, drafted);
  std::int64_t steps = 0, accepted = 0;
  std::size_t tokens = 0;
  double decode = 0;
  for (const GenerationResult& r : results) {
    steps += r.metrics.steps, accepted += r.metrics.total.accepted, tokens += r.ids.size();
    decode += *r.tpot_seconds * static_cast<double>(r.ids.size() - 1);
  }
  EXPECT_EQ(totals["prompts"], 3);
  EXPECT_EQ(totals["steps"], steps);
  EXPECT_EQ(totals["accepted"], accepted);
  EXPECT_EQ(totals["generated_tokens"], tokens);
  EXPECT_NEAR(totals["decode_tokens_per_second"], static_cast<double>(tokens - 3) / decode, 1e-6);
}

TEST_P(SessionTest, SummaryWarnsOfACutAnswerAndExplainsTheSpeed) {
  Session drafted = session({"draft.model=" + draft_, "draft.length=2"});
  const std::string summary = human_summary(answer(drafted), drafted);
  for (const char* part : {"WARNING", "stop.max_tokens 20", "seed 5", "load", "tokens/s"}) {
    EXPECT_THAT(summary, HasSubstr(part));
  }
  Session plain = session({"draft.kind=none"});
  EXPECT_THAT(explanation(answer(plain), plain), HasSubstr("plain decoding"));
}

TEST_P(SessionTest, BothModelsShareOnePool) {
  const auto threads_of_process = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads_of_process();
  const Session both = session({"draft.kind=model", "draft.model=" + draft_, "runtime.threads=3"});
  EXPECT_EQ(threads_of_process(), before + 2);
}

TEST_P(SessionTest, DraftContextFollowsTheTargets) {
  int context = 0;
  const auto probe = [&](const DrafterSetup& setup) {
    context = setup.context;
    return make_drafter(setup);
  };
  for (const auto& [setting, expected] : std::vector<std::pair<std::string, int>>{
           {"draft.model=" + draft_, 6000}, {"draft.model=" + short_draft_, 300}, {"draft.kind=ngram", 6000}}) {
    const Session session(config({setting, "target.context=6000"}), GetParam(), probe);
    EXPECT_EQ(context, expected) << setting;
  }
  const Session smaller(config({"draft.model=" + draft_, "draft.context=64"}), GetParam(), probe);
  EXPECT_EQ(context, 64);
  const Session larger(config({"draft.model=" + draft_, "draft.context=512"}), GetParam(), probe);
  EXPECT_EQ(context, 128);  // more than the target's 128 tokens never come
}

TEST_P(SessionTest, LimitsOfTheModelAreCheckedAtLoad) {
  EXPECT_THAT(refusal({"target.context=8193"}), AllOf(HasSubstr("target.context"), HasSubstr("8192")));
  EXPECT_THAT(refusal({"draft.model=" + short_draft_, "draft.context=301"}),
              AllOf(HasSubstr("draft.context"), HasSubstr("300"), HasSubstr("short.gguf")));
  EXPECT_THAT(refusal({"stop.token_ids=[108]"}), AllOf(HasSubstr("stop.token_ids"), HasSubstr("0..107")));
  EXPECT_THAT(refusal({"sampling.logit_bias={107: 5, 108: 5}"}),  // B16
              AllOf(HasSubstr("sampling.logit_bias"), HasSubstr("0..107"), HasSubstr("got 108")));
  EXPECT_EQ(refusal({"sampling.logit_bias={107: 5}"}), "accepted");
  EXPECT_THAT(refusal({"prompt.chat=true"}), AllOf(HasSubstr("prompt.chat"), HasSubstr("no chat template")));
}

TEST_P(SessionTest, EndIdsOfModelAndUserStop) {
  Session plain = session({"draft.kind=none"});
  const std::vector<TokenId> ids = answer(plain).ids;
  Session stopped = session({"draft.kind=ngram", "stop.token_ids=[" + std::to_string(ids[4]) + "]"});
  const StopRules rules = stopped.stop_rules();
  EXPECT_THAT(rules.end_ids, ::testing::IsSupersetOf({TokenId{105}, TokenId{107}, ids[4]}));
  const GenerationResult result = answer(stopped);
  EXPECT_EQ(result.stop_reason, StopReason::stop);
  EXPECT_EQ(result.ids.back(), ids[4]);
}

TEST_P(SessionTest, LogprobsAreReportedWhenAskedForAndTheSameUnderDrafting) {
  Session plain = session({"draft.kind=none", "sampling.logprobs=3", "sampling.repetition_penalty=1.2"});
  const GenerationResult result = answer(plain);
  const Json json = report(result, plain);
  ASSERT_EQ(json["logprobs"].size(), result.ids.size());
  for (std::size_t i = 0; i < result.ids.size(); ++i) {
    const Json& token = json["logprobs"][i];
    EXPECT_EQ(token["id"], result.ids[i]);
    EXPECT_EQ(token["text"], plain.tokenizer().bytes(result.ids[i], true));
    EXPECT_LE(token["logprob"], 0);
    ASSERT_EQ(token["top"].size(), 3u);
    for (const Json& alternative : token["top"]) {
      EXPECT_LT(alternative["id"], 108);  // padding is no alternative
      EXPECT_LE(alternative["logprob"], token["top"][0]["logprob"]);
    }
  }
  EXPECT_THAT(human_summary(result, plain), ::testing::Not(HasSubstr("logprob")));
  Session drafted = session({"draft.model=" + draft_, "sampling.logprobs=3", "sampling.repetition_penalty=1.2"});
  EXPECT_EQ(report(answer(drafted), drafted)["logprobs"], json["logprobs"]);

  Session unasked = session({"draft.kind=none"});
  EXPECT_FALSE(report(answer(unasked), unasked).contains("logprobs"));
}

TEST_P(SessionTest, PaddingAndUnusedIdsAreNeverDrawn) {  // B07: the embedding has 112 rows, the vocabulary 108 tokens
  Session wild = session({"draft.model=" + draft_, "sampling.temperature=50", "sampling.top_k=0", "sampling.top_p=1",
                          "stop.max_tokens=100"});
  StopRules rules = wild.stop_rules();
  rules.end_ids.clear();
  Generation generation(wild.engine(), wild.tokenizer(), wild.encode_raw("a"), rules);
  while (generation.advance()) continue;
  EXPECT_EQ(generation.result().ids.size(), 100u);
  for (const TokenId id : generation.result().ids) EXPECT_LT(id, 108);
}

INSTANTIATE_TEST_SUITE_P(Backends, SessionTest, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "reference" : "cpu"; });

}  // namespace
}  // namespace tandem::test
