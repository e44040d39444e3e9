// A whole sweep on tiny models: pairs, order, faults, and what its report says.
#include "src/engine/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "src/base/error.h"
#include "src/engine/sweep_report.h"
#include "tests/engine/mutant_rules.h"
#include "tests/engine/session_models.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const std::atomic<bool> kGoOn{false};

class SweepTest : public ::testing::Test, protected SessionModels {
 protected:
  SweepTest() { write_pair(); }

  Config read(const std::vector<std::string>& settings) const {
    Options options = Options::from_text(
        "target: {context: 128}\ndraft: {length: 3}\nsampling: {temperature: 0, top_k: 5}\nruntime: {threads: 1}\n",
        "tiny.yaml");
    options.set("target.model=" + target_);
    options.set("draft.model=" + draft_);
    for (const std::string& setting : settings) options.set(setting);
    return read_config(std::move(options));
  }
  std::vector<SweepCell> cells(const SweepGrid& grid) const {
    return make_cells(grid, [this](const std::vector<std::string>& settings) { return read(settings); }).cells;
  }
  static std::vector<SweepPair> run_all(const Sweep& sweep, const std::vector<SweepTask>& order) {
    std::vector<SweepPair> pairs;
    for (const SweepTask& task : order) pairs.push_back(*sweep.run(task, kGoOn));
    return pairs;
  }

  std::vector<SweepPrompt> prompts_{{"one", "code", {7, 8, 9, 60, 7, 8, 9, 61, 7, 8}, 24},
                                    {"two", "chat", {5, 6, 5}, 9}};
};

TEST_F(SweepTest, EveryPairIsWhatTheCellsOwnRunAndAPlainRunDo) {
  const std::vector<SweepCell> all = cells({.kinds = {"model", "ngram", "recycle", "hybrid", "none"},
                                            .lengths = {"2", "6"},
                                            .thresholds = {"0", "0.3"},
                                            .rules = {"rejection", "block", "coupled"},
                                            .temperatures = {"0", "1"}});
  const Session session(session_config(all));
  const Sweep sweep(session, all, prompts_, 11);
  for (const SweepTask& task : sweep_order(all.size(), prompts_.size(), 1, 3)) {
    SCOPED_TRACE(all[task.cell].name() + ", " + prompts_[task.prompt].id);
    const SweepPair pair = *sweep.run(task, kGoOn);
    for (const bool drafted : {true, false}) {
      Config config = all[task.cell].config;
      config.seed = 11;
      if (!drafted) config.draft.kind = "none";
      Session own(config);
      StopRules rules = own.stop_rules();
      rules.max_tokens = prompts_[task.prompt].max_tokens;
      Generation generation(own.engine(), own.tokenizer(), prompts_[task.prompt].ids, rules);
      while (generation.advance()) continue;
      const SweepRun expected(generation.result()), got = drafted ? pair.drafted : pair.plain;
      EXPECT_EQ(got.tokens, expected.tokens);
      EXPECT_EQ(got.steps, expected.steps);
      EXPECT_EQ(got.total.proposed, expected.total.proposed);
      EXPECT_EQ(got.total.accepted, expected.total.accepted);
      EXPECT_EQ(got.stop_reason, expected.stop_reason);
    }
    EXPECT_FALSE(pair.differs_at.has_value());
    EXPECT_TRUE(pair.speedup().has_value());
    EXPECT_EQ(pair.cell, all[task.cell].key());
    EXPECT_EQ(pair.prompt, prompts_[task.prompt].key());
  }
}

TEST_F(SweepTest, AutomaticLengthRunsBesideFixedOnes) {
  const std::vector<SweepCell> all = cells({.kinds = {"ngram", "hybrid"}, .lengths = {"3", "auto"}});
  const Session session(session_config(all));
  const Sweep sweep(session, all, prompts_, 1);
  for (const SweepPair& pair : run_all(sweep, sweep_order(all.size(), 2, 1, 1))) {
    EXPECT_FALSE(pair.differs_at.has_value());
  }
}

TEST_F(SweepTest, ADifferingTextIsFound) {
  const std::vector<SweepCell> all = cells({.kinds = {"model"}, .lengths = {"3"}});
  const Session session(session_config(all));
  const Sweep sweep(session, all, prompts_, 1,
                    [](std::string_view) { return std::make_unique<MutantRule>(Mistake::accepts_all); });
  const std::vector<SweepPair> pairs = run_all(sweep, sweep_order(1, 1, 1, 1));
  ASSERT_TRUE(pairs[0].differs_at.has_value());
  EXPECT_GE(*pairs[0].differs_at, 1);
  const std::vector<CellFigures> figures = cell_figures(all, prompts_, pairs, 1);
  const SweepReport report{session, all, prompts_, pairs, figures, "", "", 1, 1, 1};
  EXPECT_EQ(report.faults(), 1u);
  EXPECT_THAT(sweep_text(report), HasSubstr("DIFFERS: model, length 3"));
  EXPECT_EQ(sweep_json(report)["cells"][0]["faults"][0]["differs_at"], *pairs[0].differs_at);
}

// Draws nothing: as when a row of logits holds no number.
class FailingRule final : public Verifier {
 public:
  explicit FailingRule(ErrorKind kind) : kind_(kind) {}
  Verdict verify(const TokenTree&, const Logits&, Sampler&, Context&) override { fail(kind_, "row 3: no number"); }
  std::string_view name() const override { return "failing"; }
  bool lossless() const override { return true; }

 private:
  ErrorKind kind_;
};

TEST_F(SweepTest, AnAnswerThatFailsIsAFailedPairAndNothingElseIsLost) {
  const std::vector<SweepCell> all = cells({.kinds = {"model"}, .lengths = {"3"}});
  const Session session(session_config(all));
  const auto with = [&](ErrorKind kind) {
    return Sweep(session, all, prompts_, 1, [kind](std::string_view) { return std::make_unique<FailingRule>(kind); });
  };
  const std::vector<SweepTask> order = sweep_order(1, 2, 1, 1);
  std::vector<SweepPair> pairs{*with(ErrorKind::numeric).run(order[0], kGoOn)};
  EXPECT_EQ(pairs[0].error, "row 3: no number");
  EXPECT_THAT(remaining(order, all, prompts_, pairs), SizeIs(2));  // it is tried again
  pairs.push_back(*Sweep(session, all, prompts_, 1).run(order[1], kGoOn));
  const std::vector<CellFigures> figures = cell_figures(all, prompts_, pairs, 1);
  const SweepReport report{session, all, prompts_, pairs, figures, "", "", 1, 1, 1};
  EXPECT_EQ(report.faults(), 1u);
  EXPECT_TRUE(figures[0].speedup.has_value());
  EXPECT_THAT(sweep_text(report), HasSubstr("FAILED: model, length 3"));
  EXPECT_THAT(sweep_text(report), HasSubstr("not complete: 1 of 2 pairs"));
  EXPECT_THAT(sweep_text(report), HasSubstr("fastest so far at temperature 0: "));
  EXPECT_THROW(with(ErrorKind::config).run(order[0], kGoOn), Error);
}

TEST_F(SweepTest, CancellingEndsAPair) {
  const std::vector<SweepCell> all = cells({});
  const Session session(session_config(all));
  const std::atomic<bool> cancel{true};
  EXPECT_FALSE(Sweep(session, all, prompts_, 1).run({0, 0, 0, false}, cancel).has_value());
}

TEST(SweepOrder, HoldsEveryTaskOnceAndWholeRepeatsFirst) {
  const std::vector<SweepTask> order = sweep_order(5, 4, 3, 9);
  ASSERT_THAT(order, SizeIs(60));
  std::set<std::tuple<int, std::size_t, std::size_t>> seen;
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(order[i].repeat, static_cast<int>(i / 20));
    seen.insert({order[i].repeat, order[i].cell, order[i].prompt});
  }
  EXPECT_THAT(seen, SizeIs(60));
  const auto first = std::ranges::count_if(order, &SweepTask::drafted_first);
  EXPECT_GT(first, 15);  // of 60, each with probability one half: 30 -+ 4 standard deviations
  EXPECT_LT(first, 45);
}

TEST(SweepOrder, IsShuffledByTheSeed) {
  const auto cells_of = [](std::uint64_t seed) {
    std::vector<std::size_t> cells;
    for (const SweepTask& task : sweep_order(6, 5, 1, seed)) cells.push_back(task.cell);
    return cells;
  };
  EXPECT_EQ(cells_of(4), cells_of(4));
  EXPECT_NE(cells_of(4), cells_of(5));
  EXPECT_FALSE(std::ranges::is_sorted(cells_of(4)));
}

TEST_F(SweepTest, WhatAJournalHoldsIsNotMeasuredAgain) {
  const std::vector<SweepCell> all = cells({.kinds = {"ngram"}, .lengths = {"2", "3"}});
  const Session session(session_config(all));
  const std::vector<SweepTask> order = sweep_order(2, 2, 2, 1);
  std::vector<SweepPair> pairs = run_all(Sweep(session, all, prompts_, 1), {order.begin(), order.begin() + 3});
  EXPECT_THAT(remaining(order, all, prompts_, pairs), SizeIs(5));
  prompts_[0].max_tokens = 5;  // another question now
  const auto of_one = std::ranges::count(pairs, prompts_[1].key(), &SweepPair::prompt);
  EXPECT_THAT(remaining(order, all, prompts_, pairs), SizeIs(8u - static_cast<std::size_t>(of_one)));
}

TEST_F(SweepTest, TheIdentityIsThatOfModelsConfigAndSeed) {
  const auto identity = [this](const std::vector<std::string>& settings, std::uint64_t seed = 1) {
    const Session session(read(settings));
    return sweep_identity(session, seed);
  };
  const nlohmann::ordered_json one = identity({"draft.kind=model"});
  EXPECT_EQ(one, identity({"draft.kind=ngram", "draft.length=9", "draft.min_probability=0.5", "verify.rule=block",
                           "sampling.temperature=1"}));
  EXPECT_NE(one, identity({"draft.kind=model"}, 2));
  EXPECT_NE(one, identity({"draft.kind=model", "sampling.top_k=6"}));
  EXPECT_NE(one, identity({"draft.kind=model", "target.context=64"}));
  EXPECT_NE(one, identity({"draft.kind=model", "draft.model=" + target_}));
}

TEST_F(SweepTest, TheIdentityHoldsWhatAConstraintsFileSaysAndNotWhereItLies) {
  const auto identity = [this](const std::string& name, const std::string& grammar) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << grammar;
    const Session session(read({"constraint.grammar=" + path}));
    return sweep_identity(session, 1);
  };
  const nlohmann::ordered_json one = identity("a.gbnf", "root ::= [a-z]+");
  EXPECT_EQ(one, identity("b.gbnf", "root ::= [a-z]+"));
  EXPECT_NE(one, identity("a.gbnf", "root ::= [a-z]{2,}"));
}

class SweepReportTest : public SweepTest {
 protected:
  void measure(const SweepGrid& grid, double plain_seconds, double drafted_seconds) {
    all_ = cells(grid);
    session_ = std::make_unique<Session>(session_config(all_));
    const std::vector<SweepTask> order = sweep_order(all_.size(), prompts_.size(), 1, 1);
    pairs_ = run_all(Sweep(*session_, all_, prompts_, 1), order);
    for (SweepPair& pair : pairs_) {  // a fake clock, so that it is known who wins
      const double faster = pair.cell == all_.back().key() ? 2 : 1;
      pair.plain.decode_seconds = plain_seconds * static_cast<double>(pair.plain.decoded);
      pair.drafted.decode_seconds = drafted_seconds / faster * static_cast<double>(pair.drafted.decoded);
    }
    figures_ = cell_figures(all_, prompts_, pairs_, 1);
  }
  SweepReport report() const { return {*session_, all_, prompts_, pairs_, figures_, "here", "a=1 b=2", 1, 1, 0}; }
  Config written(const std::string& yaml) const {
    return read_config(Options::from_file(folder_.file("winner.yaml", yaml)));
  }

  std::vector<SweepCell> all_;
  std::unique_ptr<Session> session_;
  std::vector<SweepPair> pairs_;
  std::vector<CellFigures> figures_;
};

TEST_F(SweepReportTest, TheWinnersFileIsTheCellsConfig) {
  measure({.kinds = {"model", "hybrid"}, .lengths = {"2", "7"}, .thresholds = {"0.125"}}, 0.04, 0.03);
  const std::vector<Winner> found = winners(all_, figures_);
  ASSERT_THAT(found, SizeIs(1));
  const std::string yaml = winner_yaml(report(), found[0]);
  EXPECT_THAT(yaml, HasSubstr("# Written by tandem sweep: fastest at temperature 0: hybrid, length 7"));
  EXPECT_THAT(yaml, HasSubstr("2.67 times plain"));
  EXPECT_EQ(to_yaml(written(yaml)), to_yaml(all_.back().config));
  EXPECT_EQ(written(yaml).draft.length, 7);
  EXPECT_EQ(written(yaml).draft.min_probability, 0.125);
}

TEST_F(SweepReportTest, WhereNothingIsFasterTheFileIsPlainDecoding) {
  measure({.kinds = {"model"}, .lengths = {"2", "3"}}, 0.01, 0.03);
  const std::string yaml = winner_yaml(report(), winners(all_, figures_)[0]);
  EXPECT_THAT(yaml, HasSubstr("plain decoding: no drafts were faster"));
  EXPECT_EQ(written(yaml).draft.kind, "none");
  EXPECT_THAT(sweep_text(report()), HasSubstr("fastest at temperature 0: plain decoding"));
}

TEST_F(SweepReportTest, CountsOfTheReportAddUp) {
  measure({.kinds = {"model", "none"}, .lengths = {"2", "4"}, .temperatures = {"0", "1"}}, 0.04, 0.03);
  const nlohmann::ordered_json json = sweep_json(report());
  EXPECT_EQ(json["pairs_wanted"], 12);
  EXPECT_EQ(json["pairs_done"], 12);
  EXPECT_THAT(json["pairs"], SizeIs(12));
  ASSERT_THAT(json["cells"], SizeIs(6));
  for (const auto& cell : json["cells"]) {
    for (const char* side : {"plain", "drafted"}) {
      const auto& run = cell[side];
      EXPECT_EQ(run["tokens"].get<int>(), run["decoded_tokens"].get<int>() + 2) << "the first of two answers' each";
      std::map<std::string, std::int64_t> sums;
      for (const char* count : {"proposed", "tested", "accepted"}) {
        for (const auto& at : run[std::string(count) + "_by_position"]) sums[count] += at.get<std::int64_t>();
        EXPECT_EQ(sums[count], run[count]) << count;
      }
    }
    EXPECT_EQ(cell["plain"]["proposed"], 0);
  }
  EXPECT_EQ(json["settings"]["seed"], 1);
  EXPECT_FALSE(json["settings"].contains("draft_kind"));  // cells have their own
  EXPECT_THAT(json["winners"], SizeIs(2));
}

TEST_F(SweepReportTest, CsvHasARowACellUnderOneHeader) {
  measure({.kinds = {"model", "none"}, .lengths = {"2"}}, 0.04, 0.03);
  std::istringstream lines(sweep_csv(report()));
  std::string header, row;
  std::getline(lines, header);
  const auto fields = std::ranges::count(header, ',');
  int rows = 0;
  for (; std::getline(lines, row); ++rows) EXPECT_EQ(std::ranges::count(row, ','), fields) << row;
  EXPECT_EQ(rows, 2);
  all_[0].config.source = "a \"b\", c.yaml";
  EXPECT_THAT(sweep_csv(report()), HasSubstr("\nhere,\"a \"\"b\"\", c.yaml\",a=1 b=2,target.gguf,draft.gguf,"));
}

TEST_F(SweepReportTest, TheTableShowsTheFastestFirstWithItsBar) {
  measure({.kinds = {"model"}, .lengths = {"2", "4"}}, 0.04, 0.04);
  const std::string text = sweep_text(report());
  EXPECT_LT(text.find("model   4"), text.find("model   2"));
  EXPECT_THAT(text, HasSubstr("2.00 .. 2.00"));
  EXPECT_THAT(text, HasSubstr("############|############\n"));
  EXPECT_THAT(text, Not(HasSubstr("noisy (!)")));
  EXPECT_THAT(text, Not(HasSubstr("not complete")));
}

}  // namespace
}  // namespace tandem::test
