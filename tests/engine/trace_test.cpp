// Traces show what happened, in the numbers that decided it, and change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/engine/trace_text.h"
#include "tests/engine/engine_rig.h"
#include "tests/sample/chi_square.h"
#include "tests/sample/plain_chain.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

constexpr int kTokens = 24;
constexpr int kAll = 1000;  // more than the vocabulary

struct Traced {
  std::vector<PrefillTrace> prefills;
  std::vector<StepTrace> steps;
  GenerationResult result;
};

Traced traced(Engine& engine, const Tokenizer& tokenizer, const std::vector<TokenId>& prompt, const StopRules& rules,
              int top = kAll) {
  Generation generation(engine, tokenizer, prompt, rules);
  Tracer tracer(engine, generation, top);
  Traced out;
  while (auto prefill = tracer.prefill()) out.prefills.push_back(std::move(*prefill));
  while (auto step = tracer.advance()) out.steps.push_back(std::move(*step));
  out.result = generation.result();
  return out;
}

class Trace : public ::testing::TestWithParam<std::string> {
 protected:
  Rig& rig() { return Rig::shared(GetParam()); }

  // What plain decoding would give, for the drafters that know it.
  std::vector<TokenId> truth(const RigOptions& options) { return rig().plain(prompt_, kTokens, options); }

  static RigOptions sampled(const std::string& rule = "rejection") {
    RigOptions options;
    options.rule = rule;
    options.seed = 11;
    options.sampling.temperature = 1;
    options.sampling.top_k = 20;
    return options;
  }

  // The distribution after the chain, by a pass of its own and the plainest code.
  Distribution by_hand(const std::vector<TokenId>& tokens, const RigOptions& options) {
    KvCache cache = rig().target().make_cache(options.capacity, rig().kv_type());
    std::vector<float> row = feed(rig().target(), cache, tokens);
    row.resize(kWords + 3);  // no padding
    return tandem::testing::expected(tandem::testing::penalised(row, options.sampling, tokens), options.sampling);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = make_tokenizer(tiny_vocabulary(), "tiny");
  std::vector<TokenId> prompt_ = random_prompt(3, 12);
};
INSTANTIATE_TEST_SUITE_P(Backends, Trace, ::testing::ValuesIn(backends()), [](const auto& info) { return info.param; });

TEST_P(Trace, ChangesNothing) {
  for (const double temperature : {0.0, 1.0}) {
    for (const std::string rule : {"rejection", "block", "coupled", "typical"}) {
      RigOptions options = sampled(rule);
      options.sampling.temperature = temperature;
      const StopRules rules{.max_tokens = kTokens};
      const std::vector<TokenId> known = truth(options);
      for (const std::string& kind : Rig::kinds()) {
        SCOPED_TRACE(rule + ", " + kind + ", temperature " + std::to_string(temperature));
        Engine engine = rig().engine(rig().any_drafter(kind, known, options), options);
        Generation generation(engine, *tokenizer_, prompt_, rules);
        while (generation.advance()) continue;
        Engine watched = rig().engine(rig().any_drafter(kind, known, options), options);
        const Traced trace = traced(watched, *tokenizer_, prompt_, rules, 3);
        EXPECT_EQ(trace.result.ids, generation.result().ids);
        EXPECT_EQ(trace.result.text, generation.result().text);
        EXPECT_EQ(static_cast<std::int64_t>(trace.steps.size()), generation.result().metrics.steps + 1);
        std::vector<TokenId> committed;
        for (const StepTrace& step : trace.steps) {
          committed.insert(committed.end(), step.committed.begin(), step.committed.end());
        }
        committed.resize(committed.size() - static_cast<std::size_t>(trace.steps.back().cut));
        EXPECT_EQ(committed, generation.result().ids);
      }
    }
  }
}

TEST_P(Trace, EveryStageHasItsShape) {
  const RigOptions options = sampled();
  const ModelSpec& spec = rig().target().spec();
  Engine engine = rig().engine(rig().any_drafter("random-tree", truth(options), options), options);
  const Traced trace = traced(engine, *tokenizer_, prompt_, {.max_tokens = kTokens});

  const auto expect_stages = [&](const std::vector<StageTrace>& stages, int rows, int wanted) {
    std::vector<std::string> names{"embedding"};
    for (int i = 0; i < spec.layers; ++i) names.push_back("block " + std::to_string(i));
    if (wanted > 0) names.insert(names.end(), {"final norm", "logits"});
    ASSERT_EQ(stages.size(), names.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const bool late = static_cast<int>(i) > spec.layers;
      EXPECT_EQ(stages[i].name, names[i]);
      EXPECT_EQ(stages[i].rows, late ? wanted : rows) << names[i];
      EXPECT_EQ(stages[i].cols, names[i] == "logits" ? spec.vocab : spec.width) << names[i];
      ASSERT_EQ(static_cast<int>(stages[i].norms.size()), stages[i].rows) << names[i];
      for (const double norm : stages[i].norms) EXPECT_TRUE(std::isfinite(norm) && norm > 0) << names[i];
    }
  };
  ASSERT_EQ(trace.prefills.size(), 2u);  // 12 tokens in chunks of 7
  EXPECT_EQ(trace.prefills[1].cached, 7);
  expect_stages(trace.prefills[0].stages, 7, 0);
  expect_stages(trace.prefills[1].stages, 5, 1);
  EXPECT_TRUE(trace.steps[0].stages.empty());
  int cached = 12;
  for (std::size_t i = 1; i < trace.steps.size(); ++i) {
    const int nodes = static_cast<int>(trace.steps[i].nodes.size());
    expect_stages(trace.steps[i].stages, nodes, nodes);
    EXPECT_EQ(trace.steps[i].cached, cached);
    cached += static_cast<int>(trace.steps[i].committed.size());
  }
}

// The first and the last stage are known from elsewhere: the table of the model file, and the logits.
TEST_P(Trace, NormsAreThoseOfTheRows) {
  TinyOptions options;
  TinyModel tiny(options, GetParam());
  const GgufTensor& table = tiny.file->require("token_embd.weight", options.rows, options.width);
  ForwardTrace trace;
  tiny.model.set_trace(&trace);
  KvCache cache = tiny.model.make_cache(64, KvType::f32);
  const auto norm = [](const float* x, int count) {
    double square = 0;
    for (int i = 0; i < count; ++i) square += static_cast<double>(x[i]) * x[i];
    return std::sqrt(square);
  };
  const std::vector<float> logits = feed(tiny.model, cache, prompt_);
  ASSERT_EQ(trace.stages.size(), static_cast<std::size_t>(options.layers) + 3);
  for (std::size_t i = 0; i < prompt_.size(); ++i) {
    const float* row = reinterpret_cast<const float*>(table.data.data()) + prompt_[i] * options.width;
    EXPECT_NEAR(trace.stages.front().norms[i], norm(row, options.width), 1e-9);
  }
  EXPECT_NEAR(trace.stages.back().norms[0], norm(logits.data(), options.rows), 1e-9);

  tiny.model.set_trace(nullptr);
  trace.stages.clear();
  feed(tiny.model, cache, prompt_);
  EXPECT_TRUE(trace.stages.empty());
}

TEST_P(Trace, NodesCarryTheVerdict) {
  for (const std::string rule : {"rejection", "block", "coupled", "typical"}) {
    const RigOptions options = sampled(rule);
    const std::vector<TokenId> known = truth(options);
    for (const std::string& kind : Rig::kinds()) {
      SCOPED_TRACE(rule + ", " + kind);
      Engine engine = rig().engine(rig().any_drafter(kind, known, options), options);
      Generation generation(engine, *tokenizer_, prompt_, {.max_tokens = kTokens});
      Tracer tracer(engine, generation, 3);
      while (tracer.prefill()) continue;
      tracer.advance();
      while (const auto step = tracer.advance()) {
        const TokenTree& tree = engine.last_tree();
        const Verdict& verdict = engine.last_verdict();
        ASSERT_EQ(static_cast<int>(step->nodes.size()), tree.size());
        EXPECT_TRUE(std::equal(step->path.begin(), step->path.end(), verdict.path().begin(), verdict.path().end()));
        EXPECT_EQ(step->drawn, verdict.next);
        std::uint64_t accepted = 0, tested = 0;
        for (int node = 1; node < tree.size(); ++node) {
          const NodeTrace& shown = step->nodes[node];
          EXPECT_EQ(shown.token, tree.token(node));
          EXPECT_EQ(shown.parent, tree.parent(node));
          EXPECT_EQ(shown.q, tree.kind(node) == ChildKind::sampled ? tree.confidence(node) : 1);
          if (shown.status == NodeStatus::accepted) accepted |= std::uint64_t{1} << node;
          if (shown.status != NodeStatus::untested) tested |= std::uint64_t{1} << node;
        }
        EXPECT_EQ(step->nodes[0].status, NodeStatus::pending);
        EXPECT_EQ(accepted, tree.ancestors(verdict.path().back()) & ~std::uint64_t{1});
        EXPECT_EQ(tested, verdict.tested | accepted);
        const bool leaf = tree.next_child(step->path.back(), step->path.back()) < 0;
        EXPECT_EQ(step->draw, tree.size() == 1 ? DrawKind::plain : leaf ? DrawKind::bonus : DrawKind::correction);
      }
    }
  }
}

TEST_P(Trace, ProbabilitiesAreAfterTheWholeChainOnEveryPath) {
  RigOptions options = sampled();
  options.sampling.temperature = 0.9;
  options.sampling.top_k = 12;
  options.sampling.top_p = 0.9;
  options.sampling.min_p = 0.01;
  options.sampling.repetition_penalty = 1.3;
  options.sampling.presence_penalty = 0.4;
  options.sampling.frequency_penalty = 0.3;
  options.sampling.penalty_window = 8;
  std::vector<bool> usable(kWords + 3, true);
  options.mask = TokenMask(usable);
  Engine engine = rig().engine(rig().any_drafter("random-tree", truth(options), options), options);
  const Traced trace = traced(engine, *tokenizer_, prompt_, {.max_tokens = kTokens});
  std::vector<TokenId> committed = prompt_;
  int compared = 0;
  for (const StepTrace& step : trace.steps) {
    for (std::size_t i = 0; i < step.nodes.size() && compared < 150; ++i, ++compared) {
      std::vector<TokenId> tokens = committed;
      std::vector<TokenId> path;
      for (int node = static_cast<int>(i); node > 0; node = step.nodes[node].parent) {
        path.push_back(step.nodes[node].token);
      }
      tokens.insert(tokens.end(), path.rbegin(), path.rend());
      const Distribution p = by_hand(tokens, options);
      const RowTrace& row = step.nodes[i].next;
      ASSERT_EQ(row.probabilities.size(), p.size());
      EXPECT_EQ(row.support, static_cast<int>(p.size()));
      double total = 0, previous = 1;
      for (const TokenValue& shown : row.probabilities) {
        EXPECT_NEAR(shown.value, p[shown.id], 1e-9);
        EXPECT_LE(shown.value, previous);
        previous = shown.value;
        total += shown.value;
      }
      EXPECT_NEAR(total, 1, 1e-12);
      for (std::size_t child = i + 1; child < step.nodes.size(); ++child) {
        if (step.nodes[child].parent == static_cast<int>(i)) {
          EXPECT_NEAR(step.nodes[child].p, p[step.nodes[child].token], 1e-9);
        }
      }
      EXPECT_EQ(row.logits.size(), static_cast<std::size_t>(rig().target().spec().vocab));
    }
    committed.insert(committed.end(), step.committed.begin(), step.committed.end());
  }
  EXPECT_GT(compared, kTokens);
}

// A token that is banned leads the logits of the model and is in no distribution.
TEST_P(Trace, BannedTokensAreSeenInTheLogitsOnly) {
  RigOptions options = sampled();
  Engine engine = rig().engine(rig().drafter("none"), options);
  const TokenId best = traced(engine, *tokenizer_, prompt_, {.max_tokens = 1}).steps[0].nodes[0].next.logits[0].id;
  options.sampling.logit_bias = {{best, -HUGE_VAL}};
  Engine biased = rig().engine(rig().drafter("none"), options);
  const Traced trace = traced(biased, *tokenizer_, prompt_, {.max_tokens = 1});
  const RowTrace& row = trace.steps[0].nodes[0].next;
  EXPECT_EQ(row.logits[0].id, best);
  EXPECT_EQ(row.support, 20);
  for (const TokenValue& p : row.probabilities) EXPECT_NE(p.id, best);
}

// Over many seeds, the first token and the one that follows it come as often as the trace prints. Chi-squares that fail
// by chance once in 1e6. Printed shares wrong by 15 % (root mean square) over 3000 draws, or by 26 % over 1000, fail
// with probability 0.99 (normal approximation of the noncentral chi-square with 3 degrees of freedom).
TEST(TraceLaw, DrawsComeAsOftenAsThePrintedProbabilitiesSay) {
  constexpr int kSeeds = 3000;
  Rig& rig = Rig::shared("cpu");
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tiny_vocabulary(), "tiny");
  const std::vector<TokenId> prompt = random_prompt(3, 6);
  for (const std::string rule : {"rejection", "block", "coupled"}) {
    std::map<std::vector<TokenId>, std::vector<double>> laws, counts;  // by the tokens before the draw
    const auto count = [&](const std::vector<TokenId>& before, const RowTrace& row, TokenId drawn) {
      std::vector<double> law(static_cast<std::size_t>(rig.target().spec().vocab));
      for (const TokenValue& p : row.probabilities) law[static_cast<std::size_t>(p.id)] = p.value;
      const auto [known, fresh] = laws.emplace(before, law);
      if (fresh) counts[before].resize(law.size());
      EXPECT_EQ(known->second, law) << "one prefix, one law";
      ++counts[before][static_cast<std::size_t>(drawn)];
    };
    for (int seed = 0; seed < kSeeds; ++seed) {
      RigOptions options;
      options.rule = rule;
      options.seed = static_cast<std::uint64_t>(seed);
      options.length = 2;
      options.sampling.temperature = 1.3;
      options.sampling.top_k = 4;
      options.sampling.repetition_penalty = 1.2;
      Engine engine = rig.engine(rig.drafter("model", options), options);
      const Traced trace = traced(engine, *tokenizer, prompt, {.max_tokens = 4});
      const StepTrace &first = trace.steps[0], &step = trace.steps[1];
      count({}, first.nodes[0].next, first.drawn);
      count({first.drawn}, step.nodes[0].next, step.committed[0]);
    }
    ASSERT_EQ(laws.size(), 5u) << rule;
    const std::vector<double>& other = std::next(laws.begin())->second;
    EXPECT_FALSE(tandem::testing::chi_square(counts[{}], other).fits()) << "the law of another place fits as well";
    for (const auto& [before, law] : laws) {
      double largest = 0;
      for (const double p : law) largest = std::max(largest, p);
      EXPECT_LT(largest, 0.95) << "a law that decides nothing";
      const auto fit = tandem::testing::chi_square(counts[before], law);
      EXPECT_TRUE(fit.fits()) << rule << ": " << fit.statistic << " of " << fit.limit << " after "
                              << ::testing::PrintToString(before);
    }
  }
}

// A tree with one of everything, over the tiny vocabulary.
StepTrace forked_step() {
  StepTrace step;
  step.index = 3;
  step.cached = 40;
  const auto node = [](TokenId token, int parent, ChildKind kind, double q, double p, NodeStatus status) {
    return NodeTrace{token,
                     parent,
                     kind == ChildKind::sampled ? DraftSource::model : DraftSource::ngram,
                     kind,
                     q,
                     p,
                     status,
                     {{{1, 4.5}, {2, 3.25}}, {{2, 0.75}, {1, 0.25}}, 2}};
  };
  step.nodes = {node(33, -1, ChildKind::deterministic, 1, 1, NodeStatus::pending),
                node(34, 0, ChildKind::deterministic, 1, 0.125, NodeStatus::rejected),
                node(35, 0, ChildKind::sampled, 0.5, 0.625, NodeStatus::accepted),
                node(36, 1, ChildKind::sampled, 0.25, 0.0625, NodeStatus::untested),
                node(2, 2, ChildKind::sampled, 0.5, 0.75, NodeStatus::accepted)};
  step.path = {0, 2, 4};
  step.drawn = 1;
  step.probability = 0.25;
  step.draw = DrawKind::bonus;
  step.committed = {35, 2, 1};
  step.stages = {{"embedding", 5, 32, {1, 2, 3, 4, 5}}, {"block 0", 5, 32, {1, 2, 6, 7, 8}}};
  return step;
}

TEST(TraceText, DrawsTheTreeInColumns) {
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tiny_vocabulary(), "tiny");
  EXPECT_EQ(tree_text(forked_step(), *tokenizer),
            "  0 \"B\"      pending\n"
            "  ├ 1 \"C\"    ngram   q one-hot  p 0.1250   rejected\n"
            "  │ └ 3 \"E\"  model   q 0.2500   p 0.0625   not tested\n"
            "  └ 2 \"D\"    model   q 0.5000   p 0.6250   accepted\n"
            "    └ 4 \"#\"  model   q 0.5000   p 0.7500   accepted\n");
}

TEST(TraceText, ShowsTheWholeStepWithinItsColumns) {
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tiny_vocabulary(), "tiny");
  const std::string text = to_text(forked_step(), *tokenizer);
  for (const char* part : {"step 3: 5 rows behind 40 cached tokens", "embedding     [5, 32]         3\n",
                           "block 0       [5, 32]         6\n", "after node 2 35 \"D\"", "0.7500  2 \"#\"  <-",
                           "drawn: 1 \"\\\"\", p 0.2500 (bonus)", "    35 \"D\"  2 \"#\"  1 \"\\\"\"\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("after node 1")));
  StepTrace rare = forked_step();
  rare.nodes[2].p = 3.2e-7;
  rare.nodes[0].next.probabilities[1].id = 50;
  EXPECT_THAT(to_text(rare, *tokenizer), HasSubstr("    3.2e-07  35 \"D\"  <-\n"));
  rare.nodes.resize(1);
  rare.path = {0};
  EXPECT_THAT(to_text(rare, *tokenizer), HasSubstr("  no proposal\n"));
  const std::vector<TokenId> prompt = random_prompt(1, 500);
  const std::string shown = prompt_text(prompt, *tokenizer);
  EXPECT_THAT(shown, HasSubstr("prompt: 500 tokens\n"));
  EXPECT_THAT(shown, HasSubstr("... 420 more ..."));
  for (const std::string& block : {text, shown}) {
    for (std::size_t begin = 0; begin < block.size();) {
      const std::size_t end = block.find('\n', begin);
      EXPECT_LE(end - begin, 100u) << block.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

TEST(TraceText, QuotesAnyBytesOnOneLine) {
  EXPECT_EQ(quoted(" the"), "\" the\"");
  EXPECT_EQ(quoted("a\"b\\\n\t\r\x1b"), "\"a\\\"b\\\\\\n\\t\\x0d\\x1b\"");
  EXPECT_EQ(quoted("\u00e9\u65e5"), "\"\u00e9\u65e5\"");
  EXPECT_EQ(quoted("\xe6\x97 \xff"), "\"\\xe6\\x97 \\xff\"");
  EXPECT_EQ(quoted("\u0085"), "\"\\xc2\\x85\"");
  EXPECT_EQ(quoted("a\n\nb", 4), "\"a\\n…\"");
  EXPECT_EQ(quoted("\u65e5\u672c\u8a9e", 2), "\"\u65e5\u672c…\"");
}

TEST(TraceJson, HoldsTheTreeAndNothingThatIsNoNumber) {
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(tiny_vocabulary(), "tiny");
  StepTrace step = forked_step();
  step.nodes[4].next.logits[0].value = -INFINITY;
  step.stages[0].norms[0] = NAN;
  const Json json = Json::parse(to_json(step, *tokenizer).dump());
  EXPECT_EQ(json["event"], "step");
  EXPECT_EQ(json["step"], 3);
  EXPECT_EQ(json["stages"][0]["shape"], Json::parse("[5, 32]"));
  EXPECT_TRUE(json["stages"][0]["norms"][0].is_null());
  EXPECT_EQ(json["tree"].size(), 5u);
  EXPECT_TRUE(json["tree"][0]["parent"].is_null());
  EXPECT_FALSE(json["tree"][0].contains("q"));
  EXPECT_EQ(json["tree"][3]["status"], "not tested");
  EXPECT_EQ(json["tree"][1]["kind"], "deterministic");
  EXPECT_EQ(json["tree"][2]["q"], 0.5);
  EXPECT_TRUE(json["tree"][4]["next"]["logits"][0]["logit"].is_null());
  EXPECT_EQ(json["path"], Json::parse("[0, 2, 4]"));
  EXPECT_EQ(json["draw"], Json::parse(R"({"id": 1, "text": "\"", "p": 0.25, "kind": "bonus"})"));
}

}  // namespace
}  // namespace tandem::test
