// Nothing of one prompt reaches the next: what an engine that has answered others drafts, accepts and writes for a
// prompt is, step by step, what a fresh one does.
#include <gtest/gtest.h>

#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

struct Step {
  std::vector<std::tuple<TokenId, int, DraftSource, float>> nodes;  // token, parent, source, confidence
  std::vector<int> path;
  std::uint64_t tested;
  TokenId next;
  bool operator==(const Step&) const = default;
};

// An answer of `count` tokens, step by step.
std::vector<Step> steps_of(Engine& engine, const std::vector<TokenId>& prompt, int count) {
  std::vector<Step> steps;
  begin(engine, prompt);
  for (int done = 1; done < count;) {
    done += checked_step(engine, count - done);
    const TokenTree& tree = engine.last_tree();
    const Verdict& verdict = engine.last_verdict();
    Step step{{}, {verdict.path().begin(), verdict.path().end()}, verdict.tested, verdict.next};
    for (int i = 0; i < tree.size(); ++i) {
      step.nodes.emplace_back(tree.token(i), tree.parent(i), tree.source(i), tree.confidence(i));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

struct Case {
  std::string kind;
  int length;
  double temperature;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.kind + (info.param.length == kAuto ? "_auto" : "_fixed") +
                     (info.param.temperature > 0 ? "_sampled" : "_greedy");
  std::ranges::replace(name, '-', '_');
  return name;
}

class FreshPrompt : public ::testing::TestWithParam<Case> {
 protected:
  RigOptions options() const {
    RigOptions options{.length = GetParam().length, .max_nodes = 16, .seed = 11};
    options.sampling.temperature = GetParam().temperature;
    return options;
  }
  Engine engine() { return rig_.engine(rig_.drafter(GetParam().kind, options()), options()); }

  Rig& rig_ = Rig::shared("cpu");
};

TEST_P(FreshPrompt, IsAnsweredAsByAFreshEngine) {
  constexpr int kTokens = 24;
  // A prompt that repeats itself, so that every source drafts.
  std::vector<TokenId> repeating = random_prompt(3, 9);
  repeating.insert(repeating.end(), repeating.begin(), repeating.end());
  Engine used = engine();
  steps_of(used, repeating, kTokens);
  const std::vector<TokenId> whole(used.context().tokens().begin(), used.context().tokens().end());
  std::vector<TokenId> longer = whole;
  longer.push_back(whole[2]);
  const std::vector<std::pair<const char*, std::vector<TokenId>>> prompts{
      {"the same", repeating},
      {"all but the last token", {whole.begin(), whole.end() - 1}},
      {"all that was written", whole},
      {"another", random_prompt(4, 12)},
      {"its beginning", {whole.begin(), whole.begin() + 7}},
      {"what goes on from the last", longer},
      {"a long one", random_prompt(5, 40)},
      {"its end",
       [] {
         auto p = random_prompt(5, 40);
         p.erase(p.begin(), p.begin() + 9);
         return p;
       }()},
      {"the long one again", random_prompt(5, 40)},
      {"the first again", repeating}};
  int drafted = 0;
  for (const bool reset : {false, true}) {
    for (const auto& [name, prompt] : prompts) {
      if (reset) used.reset();
      Engine fresh = engine();
      const std::vector<Step> expected = steps_of(fresh, prompt, kTokens), got = steps_of(used, prompt, kTokens);
      EXPECT_EQ(got, expected) << name << (reset ? " after a reset" : "");
      for (const Step& step : expected) drafted += static_cast<int>(step.nodes.size()) - 1;
      // As after an answer that was stopped in the middle of a step.
      used.cut(1);
    }
  }
  EXPECT_GT(drafted, 0);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* kind : {"ngram", "recycle", "reuse", "model", "cheap-model", "hybrid"}) {
    for (const int length : {4, kAuto}) {
      for (const double temperature : {0.0, 1.0}) all.push_back({kind, length, temperature});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Drafters, FreshPrompt, ::testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace tandem::test
