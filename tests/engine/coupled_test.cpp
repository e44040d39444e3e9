// Under `coupled` a seed gives the very tokens of plain decoding, whatever is drafted and however it runs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/engine_rig.h"

namespace tandem::test {
namespace {

struct Place {
  std::string backend;
  int threads;
};
void PrintTo(const Place& place, std::ostream* out) { *out << place.backend << " x" << place.threads; }

class Coupled : public ::testing::TestWithParam<Place> {
 protected:
  Rig& rig() { return Rig::shared(GetParam().backend, GetParam().threads); }
  // What plain decoding gives on one thread.
  std::vector<TokenId> plain(const std::vector<TokenId>& prompt, int count, const RigOptions& options) {
    return Rig::shared(GetParam().backend).plain(prompt, count, options);
  }
  bool small() const { return GetParam().threads > 1; }  // two threads on tiny ops mostly wait for each other
};

std::vector<RigOptions> samplings() {
  std::vector<RigOptions> all;
  for (const double temperature : {0.0, 0.7, 1.0, 2.0}) {
    all.emplace_back().sampling.temperature = temperature;
  }
  all.emplace_back().sampling = {.temperature = 0.9, .top_k = 5, .top_p = 1};
  all.emplace_back().sampling = {.temperature = 1.3, .top_k = 0, .top_p = 0.8, .min_p = 0.05};
  for (RigOptions& options : all) options.rule = "coupled", options.seed = 42;
  return all;
}

TEST_P(Coupled, TextOfASeedIsPlainsForEveryDrafterLengthAndTemperature) {
  constexpr int kTokens = 20;
  std::vector<TokenId> prompt = random_prompt(3, 5);
  for (int i = 0; i < 10; ++i) prompt.push_back(prompt[i]);  // n-grams match
  for (RigOptions options : samplings()) {
    const std::vector<TokenId> truth = plain(prompt, kTokens, options);
    for (const std::string& kind : Rig::kinds()) {
      for (const int length : small() ? std::vector{4} : std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
        SCOPED_TRACE(kind + " of length " + std::to_string(length) + " at temperature " +
                     std::to_string(options.sampling.temperature));
        options.length = length;
        Engine engine = rig().engine(rig().any_drafter(kind, truth, options), options);
        EXPECT_EQ(run(engine, prompt, kTokens), truth);
        const DraftCounts& total = engine.metrics().total;
        if (kind == "oracle") {
          EXPECT_EQ(total.accepted, total.proposed);
        }
        if (kind == "wrong") {
          EXPECT_EQ(total.accepted, 0);
        }
      }
    }
  }
}

// A draft that is the target draws the target's own tokens, because it draws with the target's noise.
TEST_P(Coupled, ADraftEqualToTheTargetIsAlwaysAccepted) {
  const std::vector<TokenId> prompt = random_prompt(4, 11);
  for (const RigOptions& options : samplings()) {
    Engine engine = rig().engine(rig().drafter("self", options), options);
    run(engine, prompt, 30);
    const DraftCounts& total = engine.metrics().total;
    EXPECT_GT(total.proposed, 20);
    EXPECT_EQ(total.accepted, total.proposed) << options.sampling.temperature;
  }
}

// With noise of its own the same draft is right only by chance.
TEST_P(Coupled, SharedNoiseIsWhatMakesDraftsAgree) {
  const std::vector<TokenId> prompt = random_prompt(4, 11);
  RigOptions options = samplings()[2];
  RigOptions independent = options;
  independent.rule = "rejection";
  Engine engine = rig().engine(rig().drafter("self", independent), options);
  EXPECT_EQ(run(engine, prompt, 30), plain(prompt, 30, options));
  EXPECT_LT(engine.metrics().total.accepted, engine.metrics().total.tested);
}

TEST_P(Coupled, StreamsAndSeedsGiveOtherTexts) {
  const std::vector<TokenId> prompt = random_prompt(4, 11);
  RigOptions options = samplings()[2];
  const std::vector<TokenId> one = plain(prompt, 20, options);
  options.seed = 43;
  Engine engine = rig().engine(rig().drafter("model", options), options);
  EXPECT_NE(run(engine, prompt, 20), one);
}

std::vector<Place> places() {
  std::vector<Place> places;
  for (const std::string& backend : backends()) {
    for (const int threads : {1, 2}) places.push_back({backend, threads});
  }
  return places;
}
INSTANTIATE_TEST_SUITE_P(Backends, Coupled, ::testing::ValuesIn(places()), [](const auto& info) {
  return info.param.backend + "_threads_" + std::to_string(info.param.threads);
});

}  // namespace
}  // namespace tandem::test
