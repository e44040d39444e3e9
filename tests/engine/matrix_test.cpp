// Everything that shapes a text, times every drafter, times every lossless rule, at several temperatures: each cell is
// a whole answer on a tiny random model.
//
//   temperature 0, any rule   the text is plain's, byte for byte
//   `coupled`                 the text is plain's for the seed, at any temperature
//   `rejection`, `block`      one text a seed; every token lies in the support that the whole sampler chain leaves at
//   its
//                             place (that its law is plain's is enumerated in tests/verify and sampled in
//                             sampling_test)
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "src/engine/generation.h"
#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

// One row of the matrix: a name, and what it changes. Add a feature here and every cell of it runs.
struct Feature {
  std::string name;
  std::function<void(RigOptions& options, StopRules& rules)> apply;
  bool changes_the_answer = true;  // of plain decoding, or the feature's cells would show nothing of their own
};

std::vector<Feature> features() {
  return {
      {"everything_off", [](RigOptions&, StopRules&) {}, false},
      {"top_k", [](RigOptions& o, StopRules&) { o.sampling.top_k = 6; }},
      {"top_p", [](RigOptions& o, StopRules&) { o.sampling.top_p = 0.7; }},
      {"min_p", [](RigOptions& o, StopRules&) { o.sampling.min_p = 0.2; }},
      {"mask",
       [](RigOptions& o, StopRules&) {
         std::vector<bool> usable(kWords, true);
         for (std::size_t i = 0; i < usable.size(); i += 3) usable[i] = false;
         o.mask = TokenMask(usable);
       }},
      {"penalties",
       [](RigOptions& o, StopRules&) {
         o.sampling.repetition_penalty = 1.3;
         o.sampling.presence_penalty = 0.4;
         o.sampling.frequency_penalty = -0.2;
         o.sampling.penalty_window = 12;  // leaves the prompt while the answer grows
       }},
      {"bias",
       [](RigOptions& o, StopRules&) {
         for (TokenId id = 0; id < kWords; id += 4) o.sampling.logit_bias.emplace_back(id, id % 8 == 0 ? 2 : -2);
         o.sampling.logit_bias.emplace_back(3, -std::numeric_limits<double>::infinity());
       }},
      {"logprobs", [](RigOptions& o, StopRules&) { o.logprobs = 3; }, false},
      {"grammar",
       [](RigOptions& o, StopRules&) {
         o.constraint =
             tiny_constraint("root ::= line+\nline ::= word (\" \" word)* [.!?] \"\\n\"?\nword ::= [a-z]{1,4} [0-9]?");
       }},
      {"grammar_that_ends",
       [](RigOptions& o, StopRules&) {
         o.constraint = tiny_constraint(
             "root ::= \"{\\\"then\\\": [\" item (\", \" item){1,2} \"]}\"\nitem ::= [a-z]{2,3} | root");
       }},
      // Single letters: some come early, some late, and those of merged tokens end in the middle of one.
      {"stop_strings",
       [](RigOptions&, StopRules& rules) {
         rules.strings = {"he", "q", "Z", "a"};
       }},
  };
}

const std::vector<std::string> kDrafters{"none",    "model",      "cheap-model", "ngram",
                                         "recycle", "hybrid",     "random-tree", "wrong",
                                         "oracle",  "duplicates", "retokenize",  "retokenize-hybrid"};

class Matrix : public ::testing::Test {
 protected:
  static constexpr int kTokens = 24;

  GenerationResult answer(const std::string& kind, const std::vector<TokenId>& truth, const RigOptions& options,
                          const StopRules& rules) {
    Engine engine = rig_.engine(rig_.any_drafter(kind, truth, options), options);
    Generation generation(engine, *tokenizer_, prompt_, rules);
    while (generation.advance()) continue;
    return generation.result();
  }

  // Each token has a share of the distribution that one sampler makes of the logits of a plain pass.
  void expect_in_support(const std::vector<TokenId>& ids, const RigOptions& options) {
    Sampler sampler(options.sampling, {options.seed, 0}, options.mask, options.constraint);
    if (options.constraint) options.constraint->begin(static_cast<int>(prompt_.size()));
    Context context;
    context.push(prompt_);
    KvCache cache = rig_.target().make_cache(options.capacity, rig_.kv_type());
    std::vector<float> logits = feed(rig_.target(), cache, prompt_);
    Distribution p;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      sampler.distribution(logits, context, p);
      ASSERT_GT(p[ids[i]], 0) << "token " << i;
      context.push(ids[i]);
      logits = feed(rig_.target(), cache, std::span(ids).subspan(i, 1));
    }
  }

  static void expect_equal_logprobs(const std::vector<TokenLogprobs>& drafted,
                                    const std::vector<TokenLogprobs>& plain) {
    ASSERT_EQ(drafted.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(drafted[i].drawn.logprob, plain[i].drawn.logprob) << "token " << i;
      for (int rank = 0; rank < plain[i].count; ++rank) {
        EXPECT_EQ(drafted[i].best[rank].id, plain[i].best[rank].id) << "token " << i;
        EXPECT_EQ(drafted[i].best[rank].logprob, plain[i].best[rank].logprob) << "token " << i;
      }
    }
  }

  void check_cell(const std::string& kind, const std::vector<TokenId>& truth, const GenerationResult& plain,
                  const RigOptions& options, const StopRules& rules) {
    const GenerationResult drafted = answer(kind, truth, options, rules);
    if (options.sampling.temperature == 0 || options.rule == "coupled" || kind == "none") {
      EXPECT_EQ(drafted.ids, plain.ids);
      EXPECT_EQ(drafted.text, plain.text);
      EXPECT_EQ(drafted.stop_reason, plain.stop_reason);
      expect_equal_logprobs(drafted.logprobs, plain.logprobs);
    } else {
      expect_in_support(drafted.ids, options);
      EXPECT_EQ(answer(kind, truth, options, rules).ids, drafted.ids);
      for (const std::string& stop : rules.strings) EXPECT_EQ(drafted.text.find(stop), std::string::npos) << stop;
    }
    EXPECT_EQ(drafted.logprobs.size(), options.logprobs > 0 ? drafted.ids.size() : 0);
    EXPECT_EQ(drafted.metrics.generated, static_cast<std::int64_t>(drafted.ids.size()));
  }

  Rig& rig_ = Rig::shared("cpu");
  std::unique_ptr<Tokenizer> tokenizer_ = make_tokenizer(tiny_vocabulary(), "tiny");
  std::vector<TokenId> prompt_ = [] {
    std::vector<TokenId> prompt = random_prompt(3, 6);
    for (int i = 0; i < 12; ++i) prompt.push_back(prompt[static_cast<std::size_t>(i)]);
    return prompt;
  }();
};

class Cells : public Matrix, public ::testing::WithParamInterface<std::tuple<int, const char*>> {};

TEST_P(Cells, Hold) {
  const Feature feature = features()[static_cast<std::size_t>(std::get<0>(GetParam()))];
  for (const double temperature : {0.0, 0.7, 1.5}) {
    RigOptions options;
    options.rule = std::get<1>(GetParam());
    options.seed = 11;
    options.sampling.temperature = temperature;
    StopRules rules{.max_tokens = kTokens};
    feature.apply(options, rules);
    StopRules to_the_end = rules;
    to_the_end.strings.clear();
    std::vector<TokenId> truth = prompt_;  // what the drafters that know the answer go by
    const std::vector<TokenId> ids = answer("none", {}, options, to_the_end).ids;
    truth.insert(truth.end(), ids.begin(), ids.end());
    const GenerationResult plain = answer("none", {}, options, rules);
    for (const std::string& kind : kDrafters) {
      options.length = kind == "hybrid" ? kAuto : 4;
      SCOPED_TRACE(feature.name + ", " + options.rule + ", " + kind + ", temperature " + std::to_string(temperature));
      check_cell(kind, truth, plain, options, rules);
    }
  }
}

TEST_F(Matrix, FeaturesChangeThePlainAnswer) {
  const auto plain = [&](const Feature& feature) {
    RigOptions options;
    options.seed = 11;
    options.sampling.temperature = 1.5;
    StopRules rules{.max_tokens = kTokens};
    feature.apply(options, rules);
    return answer("none", {}, options, rules).ids;
  };
  const std::vector<TokenId> off = plain(features().front());
  for (const Feature& feature : features())
    EXPECT_EQ(plain(feature) != off, feature.changes_the_answer) << feature.name;
}

std::vector<int> numbers() {
  std::vector<int> all(features().size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Matrix, Cells,
                         ::testing::Combine(::testing::ValuesIn(numbers()),
                                            ::testing::Values("rejection", "block", "coupled")),
                         [](const auto& info) {
                           return features()[static_cast<std::size_t>(std::get<0>(info.param))].name + "_" +
                                  std::get<1>(info.param);
                         });

}  // namespace
}  // namespace tandem::test
