// Which settings a grid holds: each once, as `tandem generate` would run it.
#include "src/engine/sweep_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"

namespace tandem::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SweepCellsTest : public ::testing::Test {
 protected:
  Config read(const std::vector<std::string>& settings) const {
    Options options = Options::from_text(base_, "base.yaml");
    options.set("target.model=" + target_);
    options.set("draft.model=" + draft_);
    for (const std::string& setting : settings) options.set(setting);
    return read_config(std::move(options));
  }
  SweepCells cells(const SweepGrid& grid) const {
    return make_cells(grid, [this](const std::vector<std::string>& settings) { return read(settings); });
  }
  std::vector<std::string> names(const SweepGrid& grid) const {
    std::vector<std::string> names;
    for (const SweepCell& cell : cells(grid).cells) names.push_back(cell.name());
    return names;
  }
  std::string refusal(const SweepGrid& grid) const {
    try {
      cells(grid);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  TempDir folder_;  // models are only looked for, not read
  std::string target_ = folder_.file("target.gguf", ""), draft_ = folder_.file("draft.gguf", "");
  std::string base_ = "sampling: {temperature: 0.5, top_k: 7}\nstop: {max_tokens: 9}\n";
};

TEST_F(SweepCellsTest, AnEmptyGridIsTheConfigItself) {
  EXPECT_THAT(names({}), ElementsAre("hybrid, length auto, threshold 0, rule rejection, temperature 0.5"));
  EXPECT_EQ(to_yaml(cells({}).cells[0].config), to_yaml(read({})));
  EXPECT_THAT(cells({}).notes, IsEmpty());
}

TEST_F(SweepCellsTest, EveryCombinationIsTheConfigThatGenerateWouldRun) {
  const SweepCells made = cells({.kinds = {"model", "hybrid"},
                                 .lengths = {"auto", "20"},
                                 .thresholds = {"0", "0.4"},
                                 .rules = {"rejection", "block", "coupled"},
                                 .temperatures = {"0.5", "1"}});
  EXPECT_THAT(made.notes, IsEmpty());
  ASSERT_THAT(made.cells, SizeIs(2 * 2 * 2 * 3 * 2));
  EXPECT_EQ(to_yaml(made.cells.back().config),
            to_yaml(read({"draft.kind=hybrid", "draft.length=20", "draft.min_probability=0.4", "verify.rule=coupled",
                          "sampling.temperature=1"})));
  EXPECT_EQ(made.cells.back().config.draft.max_nodes, 21);
  std::set<std::string> keys;
  for (const SweepCell& cell : made.cells) keys.insert(cell.key());
  EXPECT_EQ(keys.size(), made.cells.size());
}

TEST_F(SweepCellsTest, WhatDraftsNothingIsOnePlainCellATemperature) {
  const SweepGrid grid{.kinds = {"model", "none"},
                       .lengths = {"0", "2"},
                       .thresholds = {"0", "0.4"},
                       .rules = {"rejection", "block"},
                       .temperatures = {"0.5", "1"}};
  const SweepCells made = cells(grid);
  EXPECT_EQ(std::ranges::count_if(made.cells, &SweepCell::plain), 2);
  EXPECT_THAT(made.cells, SizeIs(2 + 2 * 2 * 2));
  EXPECT_THAT(made.notes,
              ElementsAre("length 0 and kind none draft nothing: one plain cell a temperature (22 left out)"));
  for (const SweepCell& cell : made.cells) EXPECT_TRUE(!cell.plain() || cell.promises_plain_text());
}

TEST_F(SweepCellsTest, NgramDraftsRunWithOneThresholdOnly) {
  const SweepCells made = cells({.kinds = {"ngram", "model"}, .lengths = {"4"}, .thresholds = {"0.2", "0", "0.4"}});
  ASSERT_THAT(made.cells, SizeIs(1 + 3));
  EXPECT_EQ(made.cells[0].config.draft.min_probability, 0.2);
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("n-gram drafts run with the first one only (2 left out)")));
}

TEST_F(SweepCellsTest, OnlyOneRuleRunsAtTemperatureZero) {
  const SweepGrid grid{.kinds = {"model"}, .lengths = {"4"}, .rules = {"block", "coupled"}, .temperatures = {"0", "1"}};
  const SweepCells made = cells(grid);
  EXPECT_THAT(names(grid), ElementsAre("model, length 4, threshold 0, rule block, temperature 0",
                                       "model, length 4, threshold 0, rule block, temperature 1",
                                       "model, length 4, threshold 0, rule coupled, temperature 1"));
  EXPECT_THAT(made.notes, ElementsAre("at temperature 0 all rules accept alike: only the first one runs (1 left out)"));
  EXPECT_TRUE(made.cells[0].promises_plain_text());
  EXPECT_FALSE(made.cells[1].promises_plain_text());
  EXPECT_TRUE(made.cells[2].promises_plain_text());
}

TEST_F(SweepCellsTest, WhatIsListedTwiceRunsOnceAndIsSaid) {
  const SweepCells made = cells({.lengths = {"4", "4"}});
  EXPECT_THAT(made.cells, SizeIs(1));
  EXPECT_THAT(made.notes, ElementsAre("listed twice: runs once (1 left out)"));
}

TEST_F(SweepCellsTest, RefusesWhatTheConfigRefuses) {
  EXPECT_THAT(refusal({.kinds = {"modle"}}), HasSubstr("draft.kind: expected"));
  EXPECT_THAT(refusal({.lengths = {"99"}}), HasSubstr("draft.length: expected auto or integer 0..63, got 99"));
  EXPECT_THAT(refusal({.thresholds = {"2"}}), HasSubstr("draft.min_probability"));
  EXPECT_THAT(refusal({.rules = {"typical"}}), HasSubstr("verify.lossy"));
  EXPECT_THAT(refusal({.temperatures = {"-1"}}), HasSubstr("sampling.temperature"));
  base_ = "draft: {max_nodes: 4}\n";
  EXPECT_THAT(refusal({.lengths = {"8"}}), HasSubstr("draft.max_nodes: expected at least 9"));
  base_ = "stop: {time_limit_seconds: 3}\n";
  EXPECT_THAT(refusal({}), HasSubstr("stop.time_limit_seconds"));
}

TEST_F(SweepCellsTest, TheSessionHasTheDraftModelAndCostsWhenACellNeedsThem) {
  const auto of = [this](const SweepGrid& grid) { return session_config(cells(grid).cells).draft; };
  EXPECT_EQ(of({.kinds = {"ngram", "model"}, .lengths = {"2"}}).kind, "hybrid");  // n-grams may have a corpus
  EXPECT_EQ(of({.kinds = {"recycle", "model"}, .lengths = {"2"}}).kind, "model");
  EXPECT_EQ(of({.kinds = {"none", "ngram", "recycle"}, .lengths = {"2"}}).kind, "ngram");
  EXPECT_EQ(of({.kinds = {"none", "recycle"}, .lengths = {"2"}}).kind, "recycle");
  EXPECT_EQ(of({.kinds = {"none"}, .lengths = {"auto"}}).kind, "none");
  EXPECT_FALSE(of({.kinds = {"none", "ngram"}, .lengths = {"2", "auto"}}).length.has_value());
  EXPECT_TRUE(of({.kinds = {"none", "ngram"}, .lengths = {"2"}}).length.has_value());
}

TEST_F(SweepCellsTest, KeysHoldEverythingButWhereTheModelsLie) {
  const SweepCell here{read({})};
  TempDir elsewhere;
  const SweepCell moved{read({"target.model=" + elsewhere.file("target.gguf", "")})};
  EXPECT_EQ(here.key(), moved.key());
  EXPECT_NE(here.key(), SweepCell{read({"sampling.top_k=8"})}.key());
}

}  // namespace
}  // namespace tandem::test
