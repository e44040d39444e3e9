// The step loop takes no memory once warm.
#include <gtest/gtest.h>

#include "tests/engine/engine_rig.h"
#include "tests/sample/allocation_counter.h"

namespace tandem::test {
namespace {

TEST(Engine, WarmAnswerAllocatesNothing) {
  Rig& rig = Rig::shared("cpu");
  const std::vector<TokenId> prompt = random_prompt(50, 12);
  const std::vector<std::pair<double, std::string>> settings{
      {0, "rejection"}, {1, "rejection"}, {1, "block"}, {1, "coupled"}, {1, "typical"}};
  for (const auto& [temperature, rule] : settings) {
    RigOptions options;
    options.sampling.temperature = temperature;
    options.rule = rule;
    const std::vector<TokenId> truth = rig.plain(prompt, 40, options);
    for (const std::string& kind : Rig::kinds()) {
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
          << rule << ", " << kind << " at temperature " << temperature;
    }
  }
}

}  // namespace
}  // namespace tandem::test
