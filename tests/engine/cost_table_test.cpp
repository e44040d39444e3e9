// The table of pass costs: measured once, found again, refreshed, and never in the way.
#include "src/engine/cost_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/engine/user_cache.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;

// A model with its file, opened as a session opens it.
struct Opened {
  Opened(const std::string& path, int threads = 1, const WeightOptions& weights = {}, std::string_view kind = "cpu")
      : file(open_model(path)),
        pool(threads),
        backend(make_backend(kind, pool)),
        model(file.spec, *file.file, *backend, 128, 512, weights) {}
  ModelFile file;
  ThreadPool pool;
  std::unique_ptr<Backend> backend;
  Transformer model;
};

class CostTableTest : public ::testing::Test {
 protected:
  CostTableTest() {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    TinyOptions options;
    options.format = Format::q8_0;
    options.context = 512;
    target_ = write_tiny_model(folder_, "target.gguf", options);
    options.noise = 0.3;
    draft_ = write_tiny_model(folder_, "draft.gguf", options);
  }
  ~CostTableTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  std::string path() const { return folder_.path() + "/tandem/costs.json"; }
  Json saved() const { return Json::parse(std::ifstream(path())); }
  void write(const std::string& text) const {
    std::filesystem::create_directories(folder_.path() + "/tandem");
    std::ofstream(path()) << text;
  }
  static CostTable table(Opened& target, Opened* draft = nullptr) {
    return cost_table(target.file, target.model, draft ? &draft->file : nullptr, draft ? &draft->model : nullptr);
  }

  TempDir folder_;
  std::string target_, draft_;
};

std::vector<double> seconds_of(const std::vector<RowSeconds>& curve) {
  std::vector<double> seconds;
  for (const RowSeconds& point : curve) seconds.push_back(point.seconds);
  return seconds;
}

std::vector<double> times(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

TEST_F(CostTableTest, IsMeasuredOnceAndSaysWhen) {
  Opened target(target_), draft(draft_);
  const CostTable first = table(target, &draft), second = table(target, &draft);
  EXPECT_EQ(first.origin(), "measured at load");
  EXPECT_EQ(second.origin(), "saved");
  EXPECT_EQ(seconds_of(second.target), seconds_of(first.target));
  EXPECT_EQ(seconds_of(second.draft), seconds_of(first.draft));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(static_cast<double>(second.measured_at), std::chrono::duration<double>(now).count(), 60);
  EXPECT_EQ(table(target).origin(), "measured at load");  // alone it is another table
  CostTable dated;
  dated.measured_at = 1795999323;
  EXPECT_EQ(dated.measured_at_text(), "2026-11-30T00:42:03Z");
}

// Seconds since 1970, whatever the file clock counts from.
TEST_F(CostTableTest, KeyHoldsTheFilesTime) {
  const auto at = std::chrono::sys_days(std::chrono::year(2024) / 5 / 17) + std::chrono::seconds(3 * 3600);
  std::filesystem::last_write_time(target_, std::chrono::file_clock::from_sys(at));
  EXPECT_EQ(identity_of(target_).nanoseconds_since_1970, 1715914800LL * 1'000'000'000);
  Opened target(target_);
  table(target);
  EXPECT_THAT(saved().begin().key(), ::testing::HasSubstr(", time 1715914800, "));
  std::filesystem::last_write_time(target_, std::chrono::file_clock::from_sys(at + std::chrono::seconds(1)));
  EXPECT_EQ(table(target).origin(), "measured at load");
}

TEST_F(CostTableTest, WhatIsDamagedIsMeasuredAgain) {
  Opened target(target_), draft(draft_);
  table(target, &draft);
  const Json good = saved();
  const std::string key = good.begin().key();
  const auto with = [&](const char* name, const std::string& value) {
    Json other = good;
    other[key][name] = Json::parse(value);
    return other.dump();
  };
  for (const std::string& text : std::vector<std::string>{"",
                                                          "{",
                                                          "null",
                                                          "[1]",
                                                          "\xff\xfe\x00",
                                                          "{\"a\": 1e999}",
                                                          good.dump().substr(0, 200),
                                                          Json{{key, 3}}.dump(),
                                                          Json{{key, Json::object()}}.dump(),
                                                          Json{{key, Json::array({1, 2})}}.dump(),
                                                          std::string(200'000, '['),
                                                          with("target", "[]"),
                                                          with("target", "{}"),
                                                          with("target", "\"x\""),
                                                          with("target", "[[1]]"),
                                                          with("target", "[[1, 2, 3]]"),
                                                          with("target", "[[1, 0]]"),
                                                          with("target", "[[1, -2]]"),
                                                          with("target", "[[1, null]]"),
                                                          with("target", "[[1, \"0.1\"]]"),
                                                          with("target", "[[0, 0.1]]"),
                                                          with("target", "[[1.5, 0.1]]"),
                                                          with("target", "[[2, 0.1], [2, 0.1]]"),
                                                          with("target", "[[2, 0.1], [1, 0.1]]"),
                                                          with("target", "[[1e18, 0.1]]"),
                                                          with("target", "[[18446744073709551615, 0.1]]"),
                                                          with("target", "[[1, 1e308]]"),
                                                          with("draft", "[]"),
                                                          with("draft", "null"),
                                                          with("measured_at", "null"),
                                                          with("measured_at", "-5"),
                                                          with("measured_at", "1e300"),
                                                          with("measured_at", "\"now\"")}) {
    write(text);
    const CostTable again = table(target, &draft);
    EXPECT_EQ(again.origin(), "measured at load") << text.substr(0, 300);
    EXPECT_GT(again.model().target.seconds(1), 0);
    EXPECT_GT(again.model().draft.seconds(64), 0);
    EXPECT_EQ(table(target, &draft).origin(), "saved");
  }
}

TEST_F(CostTableTest, FolderThatCannotBeUsedOnlyCostsTime) {
  Opened target(target_);
  std::filesystem::create_directories(path() + "/in/the/way");
  EXPECT_EQ(table(target).origin(), "measured at load");
  EXPECT_EQ(table(target).origin(), "measured at load");
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/tandem")) {
    EXPECT_EQ(entry.path().filename(), "costs.json") << "left behind";
  }
}

TEST_F(CostTableTest, OldestOfTooManyIsForgotten) {
  Opened target(target_);
  table(target);
  Json tables = saved();
  const std::string key = tables.begin().key();
  for (int i = 0; i < 80; ++i) {
    Json& other = tables[fmt::format("z{}", i)] = tables[key];
    other["measured_at"] = 1000 + i;
  }
  tables.erase(key);
  write(tables.dump());
  table(target);
  EXPECT_EQ(saved().size(), 64u);
  EXPECT_TRUE(saved().contains(key));
  EXPECT_TRUE(saved().contains("z79"));
  EXPECT_FALSE(saved().contains("z16"));
}

TEST_F(CostTableTest, RefreshMovesThePairTogether) {
  Opened target(target_), draft(draft_);
  const CostTable old = table(target, &draft), alone = table(draft);
  std::vector<RowSeconds> twice;
  for (const int rows : {1, 4, 8}) {
    twice.push_back({rows, 2 * std::ranges::find(old.target, rows, &RowSeconds::rows)->seconds});
  }
  EXPECT_EQ(refresh_cost_tables(target.file, target.model, twice), 1);
  const CostTable now = table(target, &draft);
  EXPECT_THAT(seconds_of(now.target), ::testing::Pointwise(::testing::DoubleEq(), times(seconds_of(old.target), 2)));
  EXPECT_THAT(seconds_of(now.draft), ::testing::Pointwise(::testing::DoubleEq(), times(seconds_of(old.draft), 2)));
  EXPECT_EQ(seconds_of(table(draft).target), seconds_of(alone.target));

  // As a draft and alone.
  const std::vector<RowSeconds> half{{1, now.draft.front().seconds / 2}};
  EXPECT_EQ(refresh_cost_tables(draft.file, draft.model, half), 2);
  const CostTable last = table(target, &draft);
  EXPECT_THAT(seconds_of(last.target), ::testing::Pointwise(::testing::DoubleEq(), seconds_of(old.target)));
  EXPECT_THAT(seconds_of(last.draft), ::testing::Pointwise(::testing::DoubleEq(), seconds_of(old.draft)));
}

TEST_F(CostTableTest, RefreshKeepsWhatLiesBetweenMeasuredRowsInLine) {
  Opened target(target_);
  const CostTable old = table(target);
  const auto at = [](const CostTable& table, int rows) {
    return std::ranges::find(table.target, rows, &RowSeconds::rows)->seconds;
  };
  refresh_cost_tables(target.file, target.model, std::vector<RowSeconds>{{2, at(old, 2)}, {4, 3 * at(old, 4)}});
  const CostTable now = table(target);
  for (const auto& [rows, ratio] : std::vector<std::pair<int, double>>{{1, 1}, {2, 1}, {3, 2}, {4, 3}, {16, 3}}) {
    EXPECT_NEAR(at(now, rows), ratio * at(old, rows), 1e-9 * at(now, rows)) << rows;
  }
}

TEST_F(CostTableTest, RefreshLeavesOtherModelsAndSettingsAlone) {
  Opened target(target_), draft(draft_);
  const CostTable old = table(target);
  const std::vector<RowSeconds> curve{{1, 1}};
  Opened more_threads(target_, 2), cheaper(target_, 1, {.quantize = Format::q4_0, .head_tokens = {}});
  EXPECT_EQ(refresh_cost_tables(draft.file, draft.model, curve), 0);
  EXPECT_EQ(refresh_cost_tables(more_threads.file, more_threads.model, curve), 0);
  EXPECT_EQ(refresh_cost_tables(cheaper.file, cheaper.model, curve), 0);
  EXPECT_EQ(refresh_cost_tables(target.file, target.model, std::vector<RowSeconds>{{9, 1}}), 0);  // no such point
  EXPECT_EQ(refresh_cost_tables(target.file, target.model, {}), 0);
  EXPECT_EQ(seconds_of(table(target).target), seconds_of(old.target));
}

TEST_F(CostTableTest, TablesOfAnotherDeviceAreLeftAlone) {
  if (const std::string why = why_not_built("cuda-simt"); !why.empty()) GTEST_SKIP() << why;
  Opened host(target_);
  table(host);
  std::string key = saved().begin().key();
  const Json entry = saved()[key];
  const std::string name(host.backend->name());
  Json tables;
  for (const char* device : {"cuda-simt (emulation)", "cuda-simt (another)", "cuda-simt"}) {
    tables[std::string(key).replace(key.find(name), name.size(), device)] = entry;
  }
  write(tables.dump());
  Opened emulated(target_, 1, {}, "cuda-simt");
  EXPECT_EQ(refresh_cost_tables(emulated.file, emulated.model, std::vector<RowSeconds>{{1, 1}}), 1);
  const Json after = saved();
  for (const auto& [of, table] : after.items()) {
    EXPECT_EQ(table["target"] != entry["target"], of.find("cuda-simt (emulation)") != std::string::npos) << of;
  }
}

}  // namespace
}  // namespace tandem::test
