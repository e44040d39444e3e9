// Answers under a grammar: the same with and without drafts, whole, and ended where the grammar ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "draft/constrained.h"
#include "src/base/error.h"
#include "src/engine/generation.h"
#include "src/engine/report.h"
#include "src/sample/grammar/json_schema.h"
#include "tests/engine/engine_rig.h"
#include "tests/engine/session_models.h"
#include "tests/sample/grammar_recogniser.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;

constexpr TokenId kEnd = 107;  // <|im_end|> of the tiny vocabulary

class Constrained : public ::testing::Test {
 protected:
  GenerationResult answer(Engine& engine, const StopRules& rules = {.max_tokens = 40}) {
    Generation generation(engine, *tokenizer_, prompt_, rules);
    while (generation.advance()) continue;
    return generation.result();
  }
  std::vector<TokenId> ids(std::string_view text) const { return tokenizer_->encode(text, Specials::literal); }
  // The prompt and this text behind it.
  std::vector<TokenId> truth(std::string_view text) const {
    std::vector<TokenId> tokens = prompt_;
    const std::vector<TokenId> answer = ids(text);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    return tokens;
  }
  // What is known of the committed tokens is what a constraint that saw nothing else knows.
  static void expect_true_state(Engine& engine, int prompt) {
    Constraint& constraint = *engine.constraint();
    const int state = constraint.state(engine.context());
    Context others = engine.context();  // leads away, so that all is followed anew
    others.pop(others.size() - prompt);
    others.push(kWords - 1);
    constraint.state(others);
    EXPECT_EQ(constraint.state(engine.context()), state);
  }

  Rig& rig_ = Rig::shared("cpu");
  std::unique_ptr<Tokenizer> tokenizer_ = make_tokenizer(tiny_vocabulary(), "tiny");
  std::vector<TokenId> prompt_ = random_prompt(3, 12);
};

TEST_F(Constrained, YesOrNoWhateverIsProposed) {  // B26
  for (const char* rule : {"rejection", "block", "coupled", "typical"}) {
    for (const double temperature : {0.0, 1.0}) {
      RigOptions options;
      options.rule = rule;
      options.sampling.temperature = temperature;
      options.constraint = tiny_constraint(R"(root ::= "yes" | "no")", {kEnd});
      std::optional<std::string> plain;
      for (const std::string& kind :
           {std::string("none"), std::string("oracle"), std::string("model"), std::string("ngram"),
            std::string("hybrid"), std::string("random-tree"), std::string("duplicates")}) {
        SCOPED_TRACE(std::string(rule) + ", " + kind);
        Engine engine = rig_.engine(rig_.any_drafter(kind, truth("yes, sir"), options), options);
        const GenerationResult result = answer(engine);
        EXPECT_TRUE(result.text == "yes" || result.text == "no") << result.text;
        EXPECT_EQ(result.stop_reason, StopReason::grammar);
        EXPECT_EQ(result.ids, ids(result.text));
        expect_true_state(engine, 12);
        if (!plain) plain = result.text;
        if (temperature == 0 || rule == std::string("coupled")) {
          EXPECT_EQ(result.text, *plain);
        }
      }
    }
  }
}

// Nested values with a rejection inside of a string, after every step of it.
TEST_F(Constrained, StateAfterEachStepIsThatOfTheCommittedTokens) {
  constexpr const char* kJson = R"(root ::= "[" item ("," item){3} "]"
item ::= "\"" [a-z]{3,8} "\"" | "{\"" [a-z]{1,4} "\":" item "}" | root)";
  for (const char* rule : {"rejection", "block", "coupled"}) {
    for (const double temperature : {0.0, 1.0}) {
      RigOptions options;
      options.rule = rule;
      options.sampling.temperature = temperature;
      options.constraint = tiny_constraint(kJson, {kEnd});
      const std::vector<TokenId> plain = rig_.plain(prompt_, 30, options);
      for (const std::string& kind : Rig::kinds()) {
        SCOPED_TRACE(std::string(rule) + ", " + kind);
        Engine engine = rig_.engine(rig_.any_drafter(kind, plain, options), options);
        begin(engine, prompt_);
        for (int done = 1; done < 30;) {
          done += checked_step(engine, 30 - done);
          expect_true_state(engine, 12);
          rig_.expect_true_cache(engine);
        }
        const std::vector<TokenId> drafted(engine.context().tokens().begin(), engine.context().tokens().end());
        if (temperature == 0 || rule == std::string("coupled")) {
          EXPECT_EQ(drafted, plain);
        }
      }
    }
  }
}

// A random model says nothing sensible, but says it in the form asked for, or has not come to its end.
TEST_F(Constrained, WhatIsDrawnUnderASchemaIsValid) {
  int whole = 0;
  for (const char* schema :
       {R"({"type": "array", "items": {"type": "integer", "minimum": -20, "maximum": 130}, "maxItems": 4})",
        R"({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", null, 2.5]}},
            "required": ["a"], "additionalProperties": false})",
        R"({"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]})"}) {
    const Grammar grammar = json_schema_grammar(parse_json_schema(schema));
    GrammarRecogniser recogniser(grammar);
    for (const char* rule : {"rejection", "block", "coupled"}) {
      for (const std::string& kind : Rig::kinds()) {
        RigOptions options;
        options.rule = rule;
        options.sampling.temperature = 2;
        options.constraint = tiny_constraint(grammar, {kEnd});
        for (options.seed = 0; options.seed < 3; ++options.seed) {
          Engine engine = rig_.engine(rig_.any_drafter(kind, prompt_, options), options);
          const GenerationResult result = answer(engine, {.end_ids = {kEnd}, .max_tokens = 80});
          ASSERT_TRUE(recogniser.begins(result.text)) << result.text;
          if (result.stop_reason == StopReason::length) continue;
          ASSERT_TRUE(recogniser.matches(result.text)) << result.text;
          ++whole;
        }
      }
    }
  }
  EXPECT_GT(whole, 200);
}

TEST_F(Constrained, ForcedTokensComeWithoutTheDraft) {
  RigOptions options;
  options.length = 12;
  options.constraint = tiny_constraint(R"(root ::= "QWXYZJKL" [a-z])");
  class NeverAsked final : public GrowingDrafter {
   public:
    void grow(TokenTree& tree, Context&, LengthPolicy&) override { nodes.push_back(tree.size()); }
    void observe(const Observation&, const Context&) override {}
    void reset() override {}
    std::string_view name() const override { return "never"; }
    std::vector<int> nodes;
  };
  auto inner = std::make_unique<NeverAsked>();
  NeverAsked& asked = *inner;
  Engine engine = rig_.engine(std::make_unique<ConstrainedDrafter>(std::move(inner), options.constraint), options);
  const GenerationResult result = answer(engine);
  EXPECT_EQ(result.text.substr(0, 8), "QWXYZJKL");
  EXPECT_EQ(result.stop_reason, StopReason::grammar);
  const DraftCounts& forced = result.metrics.by_source[static_cast<std::size_t>(DraftSource::grammar)];
  EXPECT_EQ(forced.proposed, 7) << "all but the first token, which no draft proposes";
  EXPECT_EQ(forced.accepted, 7);
  EXPECT_EQ(result.metrics.steps, 1);
  EXPECT_EQ(asked.nodes, std::vector<int>{8});
}

// A draft model reads nothing where the certain tokens end the answer.
TEST_F(Constrained, NothingIsDraftedBehindTheEnd) {
  RigOptions options;
  options.length = 12;
  options.constraint = tiny_constraint(R"(root ::= "QWX" | "ZKJ")");
  for (const char* kind : {"model", "hybrid", "retokenize"}) {
    Engine engine = rig_.engine(rig_.drafter(kind, options), options);
    const GenerationResult result = answer(engine);
    EXPECT_EQ(result.metrics.total.proposed, 2) << kind;
    EXPECT_EQ(result.metrics.total.accepted, 2) << kind;
  }
}

// `the` is a token and so are its letters: the grammar forces the text and the target chooses the tokens.
TEST_F(Constrained, CertainTextIsProposedInItsLongestTokensAndLeavesTheChoiceToTheTarget) {
  RigOptions options;
  options.length = 12;
  options.constraint = tiny_constraint(R"(root ::= "!" "the" "hehe" "the" "!")");
  const std::vector<TokenId> plain = rig_.plain(prompt_, 8, options);
  Engine engine = rig_.engine(rig_.drafter("ngram", options), options);
  const GenerationResult result = answer(engine);
  EXPECT_EQ(result.text, "!thehehethe!");
  EXPECT_TRUE(std::equal(plain.begin() + 12, plain.begin() + 16, result.ids.begin()));
  EXPECT_GT(result.metrics.by_source[static_cast<std::size_t>(DraftSource::grammar)].proposed, 3);
}

TEST_F(Constrained, EndIdsEndTheTextWhereTheGrammarMayEnd) {
  RigOptions options;
  options.constraint = tiny_constraint("root ::= [a-z]{2,}", {kEnd});
  options.sampling.logit_bias = {{kEnd, 1000}};
  Engine engine = rig_.engine(rig_.drafter("model", options), options);
  const GenerationResult result = answer(engine, {.end_ids = {kEnd}, .max_tokens = 40});
  EXPECT_EQ(result.stop_reason, StopReason::stop);
  EXPECT_GE(result.text.size(), 2u);
  EXPECT_EQ(result.ids.back(), kEnd);
}

TEST_F(Constrained, AStopStringThatComesWithTheEndIsNamedFirstAndMaxTokensLast) {
  RigOptions options;
  options.constraint = tiny_constraint(R"(root ::= "QWX")");
  for (const std::string& kind : {std::string("none"), std::string("ngram")}) {
    Engine engine = rig_.engine(rig_.drafter(kind, options), options);
    EXPECT_EQ(answer(engine, {.strings = {"X"}, .max_tokens = 3}).stop_reason, StopReason::stop);
    EXPECT_EQ(answer(engine, {.max_tokens = 3}).stop_reason, StopReason::grammar);
    EXPECT_EQ(answer(engine, {.max_tokens = 2}).stop_reason, StopReason::length);
    EXPECT_EQ(answer(engine, {.strings = {"W"}, .max_tokens = 9}).text, "Q");
  }
}

TEST_F(Constrained, WhereNoTokenFitsTheErrorShowsTheTextAndWhatWasExpected) {
  RigOptions options;
  options.constraint = tiny_constraint("root ::= \"QW\xC3\xA9\"");
  for (const std::string& kind : {std::string("none"), std::string("ngram"), std::string("model")}) {
    Engine engine = rig_.engine(rig_.drafter(kind, options), options);
    try {
      answer(engine);
      ADD_FAILURE() << "answered";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::numeric);
      EXPECT_THAT(error.what(), HasSubstr("behind 2 tokens of the answer, \"QW\": expected one of the bytes \\xc3"));
    }
    options.constraint->begin(0);
  }
}

class ConstrainedSession : public ::testing::Test, protected SessionModels {
 protected:
  ConstrainedSession() { write_pair(); }
  Config config(const std::vector<std::string>& settings) const {
    Options options = Options::from_text(
        "target: {context: 128}\ndraft: {kind: hybrid, length: 4}\nsampling: {temperature: 1, seed: 5}\n", "test.yaml");
    options.set("target.model=" + target_);
    options.set("draft.model=" + draft_);
    options.set("runtime.threads=1");
    for (const std::string& setting : settings) options.set(setting);
    return read_config(std::move(options));
  }
  static GenerationResult answer(Session& session, const std::string& prompt) {
    Generation generation(session.engine(), session.tokenizer(), session.encode_raw(prompt), session.stop_rules());
    while (generation.advance()) continue;
    return generation.result();
  }
  std::string refusal(const std::vector<std::string>& settings) const {
    try {
      const Session session(config(settings));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(ConstrainedSession, EachAnswerIsHeldToItFromItsFirstToken) {
  Session session(config({"constraint.choices=[the hat, an inn, there]"}));
  for (const char* prompt : {"the hat in the inn", "he then", "the hat in the inn"}) {
    const GenerationResult result = answer(session, prompt);
    EXPECT_TRUE(result.text == "the hat" || result.text == "an inn" || result.text == "there") << result.text;
    const auto json = to_json(result, session);
    EXPECT_EQ(json["stop_reason"], "grammar");
    EXPECT_EQ(json["forced_tokens"],
              json["by_source"].contains("grammar") ? json["by_source"]["grammar"]["accepted"].get<int>() : 0);
  }
  EXPECT_EQ(settings_json(session)["constraint"], "choices the hat, an inn, there");
  EXPECT_THAT(human_summary(answer(session, "x"), session), HasSubstr("constraint: choices the hat, an inn, there; "));
}

TEST_F(ConstrainedSession, MistakesInAGrammarNameFileLineAndColumn) {
  const std::string path = folder_.path() + "/bad.gbnf";
  std::ofstream(path) << "root ::= \"a\"\n  | [b-a]\n";
  EXPECT_THAT(refusal({"constraint.grammar=" + path}), HasSubstr("bad.gbnf:2:6: expected a range of characters"));
  std::ofstream(path) << "root ::= \"a\" root\n";
  EXPECT_THAT(refusal({"constraint.grammar=" + path}), HasSubstr("constraint.grammar: rule root: expected some text"));
}

TEST_F(ConstrainedSession, TheEffectiveConfigHoldsTheConstraint) {
  const Config config = this->config({"constraint.regex='[a-z]+\\d'"});
  EXPECT_EQ(config.constraint.kind(), "regex");
  EXPECT_THAT(
      to_yaml(config),
      HasSubstr("constraint:\n  grammar: null\n  json_schema: null\n  json: false\n  regex: \"[a-z]+\\\\d\"\n"));
}

}  // namespace
}  // namespace tandem::test
