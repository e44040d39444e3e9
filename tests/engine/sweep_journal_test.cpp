// A sweep's journal loses nothing but the line that a kill tore, and goes on with nothing but its own sweep.
#include "src/engine/sweep_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::ordered_json;
using Open = SweepJournal::Open;

const Json kIdentity{{"version", "1"}, {"config", "a: 1\nb: 2\n"}};

SweepRun run_of(std::int64_t tokens, double seconds) {
  SweepRun run;
  run.answers = 1;
  run.tokens = tokens;
  run.decoded = tokens - 1;
  run.decode_seconds = seconds;
  run.ttft_seconds = 0.25;
  run.wall_seconds = seconds + 0.25;
  run.steps = 3;
  run.total = {7, 5, 4};
  run.by_position = {{3, 3, 2}, {2, 2, 2}, {2, 0, 0}};
  run.seconds = {0.2, 0.1, 0.4, 0.05, 0.01};
  run.stop_reason = "length";
  return run;
}

SweepPair pair_of(int repeat) {
  SweepPair pair;
  pair.cell = "abc";
  pair.prompt = "one 123";
  pair.repeat = repeat;
  pair.start = repeat / 2;
  pair.drafted_first = repeat % 2 == 1;
  pair.plain = run_of(9, 2.0);
  pair.drafted = run_of(9, 1.0);
  if (repeat == 1) pair.differs_at = 4;
  if (repeat == 2) pair.warning = "the draft is full";
  return pair;
}

class SweepJournalTest : public ::testing::Test {
 protected:
  std::string content() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_three() const {
    SweepJournal journal(path_, Open::fresh);
    journal.require_identity(kIdentity);
    for (int i = 0; i < 3; ++i) journal.append(pair_of(i));
  }
  std::string refusal(Open how, const Json& identity = kIdentity) const {
    try {
      SweepJournal(path_, how).require_identity(identity);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  TempDir folder_;
  std::string path_ = folder_.path() + "/sweep.jsonl";
};

TEST_F(SweepJournalTest, WhatWasAppendedIsReadAgain) {
  write_three();
  SweepJournal journal(path_, Open::resume);
  journal.require_identity(kIdentity);
  ASSERT_THAT(journal.pairs(), SizeIs(3));
  EXPECT_EQ(journal.starts(), 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(to_json(journal.pairs()[static_cast<std::size_t>(i)]), to_json(pair_of(i))) << i;
  }
  EXPECT_EQ(*journal.pairs()[1].differs_at, 4);
  EXPECT_EQ(journal.pairs()[0].drafted.by_position[1].accepted, 2);
  EXPECT_DOUBLE_EQ(*journal.pairs()[0].speedup(), 2);
}

TEST_F(SweepJournalTest, AFailedPairIsKeptWithItsReason) {
  SweepPair failed = pair_of(0);
  failed.error = "row 3: no usable number";
  {
    SweepJournal journal(path_, Open::fresh);
    journal.require_identity(kIdentity);
    journal.append(failed);
  }
  const SweepJournal journal(path_, Open::resume);
  EXPECT_EQ(journal.pairs()[0].error, failed.error);
  EXPECT_FALSE(journal.pairs()[0].speedup().has_value());
}

// Every place at which a kill may have cut the file.
TEST_F(SweepJournalTest, ATornLastLineIsDroppedAndTheRestGoesOn) {
  write_three();
  const std::string whole = content();
  std::size_t lines = 0;
  for (std::size_t size = 0; size <= whole.size(); size += size + 7 < whole.size() ? 7 : 1) {
    folder_.file("sweep.jsonl", whole.substr(0, size));
    lines =
        static_cast<std::size_t>(std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
    {
      SweepJournal journal(path_, Open::resume);
      ASSERT_THAT(journal.pairs(), SizeIs(lines == 0 ? 0 : lines - 1)) << size;
      journal.require_identity(kIdentity);
      journal.append(pair_of(2));
    }
    const SweepJournal again(path_, Open::resume);
    ASSERT_THAT(again.pairs(), SizeIs(lines == 0 ? 1 : lines)) << size;
  }
  EXPECT_EQ(lines, 4u);
}

TEST_F(SweepJournalTest, AForeignJournalIsRefusedWithWhatDiffers) {
  write_three();
  const std::string before = content();
  EXPECT_THAT(refusal(Open::resume, {{"version", "2"}, {"config", "a: 1\nb: 2\n"}}),
              AllOf(HasSubstr("sweep.jsonl"), HasSubstr("version"), HasSubstr("\"1\" there"), HasSubstr("\"2\" here")));
  EXPECT_THAT(refusal(Open::resume, {{"version", "1"}, {"config", "a: 1\nb: 3\n"}}),
              AllOf(HasSubstr("config"), HasSubstr("b: 2\" there"), HasSubstr("b: 3\" here")));
  EXPECT_THAT(refusal(Open::resume, {{"version", "1"}, {"config", "a: 1\nb: 2\n"}, {"seed", 4}}),
              AllOf(HasSubstr("seed"), HasSubstr("null there"), HasSubstr("4 here")));
  EXPECT_EQ(content(), before);
}

TEST_F(SweepJournalTest, AFreshStartNeverOverwritesASweep) {
  write_three();
  const std::string before = content();
  EXPECT_THAT(refusal(Open::fresh), AllOf(HasSubstr("sweep.jsonl"), HasSubstr("--resume")));
  EXPECT_EQ(content(), before);
  folder_.file("sweep.jsonl", "");  // what a start that was refused later leaves
  EXPECT_EQ(refusal(Open::fresh), "accepted");
}

TEST_F(SweepJournalTest, LinesThatNoSweepWroteAreRefusedWithTheirNumber) {
  write_three();
  const std::string whole = content();
  const std::string first = whole.substr(0, whole.find('\n') + 1);
  for (const std::string& line :
       {std::string("nonsense"), std::string("[]"), std::string("{}"), std::string("{\"cell\": 3}"),
        Json(to_json(pair_of(0))).dump().replace(1, 6, "\"tell\""),
        [] {
          Json json = to_json(pair_of(0));
          json["plain"]["decode_seconds"] = -1;
          return json.dump();
        }(),
        [] {
          Json json = to_json(pair_of(0));
          json["drafted"]["tested_by_position"] = std::vector<int>(65, 1);
          return json.dump();
        }()}) {
    folder_.file("sweep.jsonl", first + line + "\n" + first);
    EXPECT_THAT(refusal(Open::resume), HasSubstr("sweep.jsonl:2: expected a line that a sweep wrote")) << line;
  }
  folder_.file("sweep.jsonl", "target: {model: a.gguf}\n");
  EXPECT_THAT(refusal(Open::resume), HasSubstr("sweep.jsonl:1:"));
}

TEST_F(SweepJournalTest, ASecondSweepCannotWriteToTheSameJournal) {
  SweepJournal journal(path_, Open::fresh);
  EXPECT_THAT(refusal(Open::resume), HasSubstr("another sweep is writing"));
}

TEST_F(SweepJournalTest, AFolderThatIsNotThereIsNamed) {
  path_ = folder_.path() + "/none/sweep.jsonl";
  EXPECT_THAT(refusal(Open::fresh), AllOf(HasSubstr("none/sweep.jsonl"), HasSubstr("cannot be written")));
}

}  // namespace
}  // namespace tandem::test
