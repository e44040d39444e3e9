// The step loop takes no memory once warm.
#include <gtest/gtest.h>

#include "tests/engine/engine_rig.h"
#include "tests/sample/allocation_counter.h"

namespace tandem::test {
namespace {

TEST(Engine, WarmAnswerAllocatesNothing) {
  Rig& rig = Rig::shared("cpu");
  const std::vector<TokenId> prompt = random_prompt(50, 12);
  struct Setting {
    double temperature;
    std::string rule;
    bool everything;
    bool constrained = false;
  };
  for (const auto& [temperature, rule, everything, constrained] :
       {Setting{0, "rejection", false}, Setting{1, "rejection", false}, Setting{0, "rejection", true},
        Setting{1, "rejection", true}, Setting{1, "block", false}, Setting{1, "coupled", true},
        Setting{1, "typical", false}, Setting{0, "rejection", false, true}, Setting{1, "block", true, true}}) {
    RigOptions options;
    options.sampling.temperature = temperature;
    options.rule = rule;
    if (everything) {
      options.sampling.repetition_penalty = 1.2;
      options.sampling.frequency_penalty = 0.1;
      options.sampling.logit_bias = {{5, 1.0}};
      options.logprobs = 5;
    }
    if (constrained) options.constraint = tiny_constraint("root ::= ([a-z]{2,5} (\" \" | \", then \"))+");
    const std::vector<TokenId> truth = rig.plain(prompt, 40, options);
    for (const std::string& kind : Rig::kinds()) {
      if (kind.starts_with("retokenize")) continue;  // encoding text takes memory
      options.length = kind == "hybrid" || kind == "model" ? kAuto : 4;
      Engine engine = rig.engine(rig.any_drafter(kind, truth, options), options);
      const auto answer = [&] {
        begin(engine, prompt);
        for (int done = 1; done < 40;) done += static_cast<int>(engine.step(40 - done).size());
      };
      answer();
      const long before = tandem::testing::allocations();
      answer();
      EXPECT_GT(before, 0);
      EXPECT_EQ(tandem::testing::allocations() - before, 0)
          << rule << ", " << kind << " at temperature " << temperature
          << (everything ? " with penalties and log-probabilities" : "") << (constrained ? " under a grammar" : "");
    }
  }
}

}  // namespace
}  // namespace tandem::test
