// The file of a recording: what goes in comes out, and nothing else comes out.
#include "src/engine/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"

namespace tandem {

bool operator==(const RecordedRow::Entry& a, const RecordedRow::Entry& b) {
  return a.token == b.token && a.value == b.value;
}
bool operator==(const RecordedRow& a, const RecordedRow& b) { return a.entries == b.entries && a.rest == b.rest; }
bool operator==(const RecordedBranch& a, const RecordedBranch& b) { return a.tokens == b.tokens && a.rows == b.rows; }

namespace test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kNone = -std::numeric_limits<float>::infinity();

RecordedAnswer answer(const std::string& id) {
  RecordedAnswer a;
  a.id = id;
  a.task = "code";
  a.stop_reason = "length";
  a.tokens = {5, 6, 7, 8};
  a.prompt = 2;
  a.generated = 2;
  a.max_tokens = 9;
  a.target = {{{{7, 1.5f}, {9, 0.5f}}, -3}, {{{8, 2.5f}}, kNone}};
  a.draft = {{}, {{{3, 1.25f}, {8, 1}}, -1}};
  a.branches = {{}, {{3, 4}, {{{{4, 1}}, 0}, {{{2, 1}}, 0}}}};
  a.times = {{0.25f}, {0.125f, 0.5f}, {{4, 0.5f, 0.25f}}, {{8, 1, 0.5f}}, 1.5, 0.01, 0.02};
  return a;
}

Recording recording() {
  Recording r;
  r.settings.sampling.temperature = 0.75;
  r.settings.sampling.logit_bias = {{3, -std::numeric_limits<double>::infinity()}, {4, 1.5}};
  r.settings.noise.seed = 18446744073709551615u;
  r.settings.rule = "block";
  r.settings.kind = "hybrid";
  r.settings.longest = 3;
  r.settings.context = 64;
  r.settings.draft_context = 32;
  r.settings.vocabulary = 10;
  r.settings.end_ids = {1, 2};
  r.settings.usable = {{0, 4}, {5, 9}};
  r.settings.target_costs = {{1, 0.5}, {4, 0.75}};
  r.settings.draft_costs = {{1, 0.25}};
  r.settings.prefill_chunk = 16;
  r.settings.max_nodes = 16;
  r.settings.draft_head_rows = 10;
  r.run = {{"version", "9"}};
  r.answers = {answer("one"), answer("two")};
  return r;
}

std::string bytes_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(all).str();
}

class RecordingFile : public ::testing::Test {
 protected:
  RecordingFile() { write_recording(recording(), path_); }
  std::string refusal(const std::string& content) const {
    try {
      parse_recording(content, "other");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      return error.what();
    }
    return "accepted";
  }
  // The refusal of a recording that is whole but makes no sense.
  std::string refusal(const Recording& wrong) const {
    write_recording(wrong, folder_.path() + "/wrong");
    return refusal(bytes_of(folder_.path() + "/wrong"));
  }

  TempDir folder_;
  std::string path_ = folder_.path() + "/a.rec";
};

TEST_F(RecordingFile, GivesBackWhatWasWritten) {
  const Recording read = read_recording(path_), wrote = recording();
  EXPECT_EQ(read.run, wrote.run);
  EXPECT_EQ(read.settings.sampling.temperature, 0.75);
  EXPECT_EQ(read.settings.sampling.logit_bias, wrote.settings.sampling.logit_bias);
  EXPECT_EQ(read.settings.noise.seed, wrote.settings.noise.seed);
  EXPECT_EQ(read.settings.rule, "block");
  EXPECT_EQ(read.settings.end_ids, wrote.settings.end_ids);
  EXPECT_EQ(read.settings.usable[1].begin, 5);
  EXPECT_EQ(read.settings.target_costs[1].seconds, 0.75);
  ASSERT_EQ(read.answers.size(), 2u);
  const RecordedAnswer &a = read.answers[1], b = answer("two");
  EXPECT_EQ(a.id, "two");
  EXPECT_EQ(a.stop_reason, "length");
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.max_tokens, 9);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.draft, b.draft);
  EXPECT_EQ(a.branches, b.branches);
  EXPECT_EQ(a.times.draft_steps, b.times.draft_steps);
  EXPECT_EQ(a.times.draft_passes[0].single_seconds, 0.5f);
  EXPECT_EQ(a.times.draft_prompt, 1.5);
  EXPECT_EQ(a.times.other_a_step, 0.02);
}

TEST_F(RecordingFile, IsWholeOrNotThere) {
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1) << "nothing left beside it";
  EXPECT_THROW(write_recording(recording(), folder_.path() + "/missing/a.rec"), Error);
  const std::string before = bytes_of(path_);
  Recording more = recording();
  more.answers.push_back(answer("three"));
  write_recording(more, path_);
  EXPECT_EQ(read_recording(path_).answers.size(), 3u);
  EXPECT_NE(bytes_of(path_), before);
}

TEST_F(RecordingFile, RefusesEveryCut) {
  const std::string whole = bytes_of(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string message = refusal(whole.substr(0, size));
    const bool named = size < 18 || message.find("cut") != message.npos || message.find("version") != message.npos;
    ASSERT_TRUE(message != "accepted" && named) << size << ": " << message;
  }
}

TEST_F(RecordingFile, RefusesEveryChangedByte) {
  const std::string whole = bytes_of(path_);
  const std::size_t body = whole.find('\n', whole.find('\n') + 1) + 1;
  for (std::size_t at = body; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_THAT(refusal(changed), HasSubstr("changed: its SHA-256")) << at;
  }
}

TEST_F(RecordingFile, RefusesWhatIsForeignWithTheReason) {
  EXPECT_THAT(refusal("{\"id\": \"code-1\"}\n"), HasSubstr("expected a recording of tandem replay"));
  EXPECT_THAT(refusal("GGUF"), HasSubstr("expected a recording of tandem replay"));
  EXPECT_THAT(refusal("tandem recording 2\n{}\n"), HasSubstr("expected version 1, got 2"));
  EXPECT_THAT(refusal("tandem recording 1\n[]\n"), HasSubstr("its header is no JSON object"));
  EXPECT_THAT(refusal("tandem recording 1\n{}\n"), HasSubstr("changed: its header"));
  EXPECT_THROW(read_recording(folder_.path() + "/missing"), Error);
}

TEST_F(RecordingFile, RefusesPartsThatDoNotFitTogether) {
  const auto with = [](auto change) {
    Recording r = recording();
    change(r.answers[1]);
    return r;
  };
  const auto place = HasSubstr("answer 2 of 2: ");
  EXPECT_THAT(refusal(with([](RecordedAnswer& a) { a.tokens[3] = 10; })), AllOf(place, HasSubstr("0..9, got 10")));
  EXPECT_THAT(refusal(with([](RecordedAnswer& a) { a.target.pop_back(); })),
              HasSubstr("expected 2 rows of the target"));
  EXPECT_THAT(refusal(with([](RecordedAnswer& a) { a.branches.clear(); })), HasSubstr("0 branches"));
  EXPECT_THAT(refusal(with([](RecordedAnswer& a) { a.generated = 3; })), HasSubstr("expected a prompt and an answer"));
  EXPECT_THAT(refusal(with([](RecordedAnswer& a) { a.target[0].entries[1].token = 7; })), HasSubstr("got 7 after 7"));
  EXPECT_THAT(refusal(with([](RecordedAnswer& a) { a.branches[1].rows.pop_back(); })), HasSubstr("got 1 and 2"));
  EXPECT_THAT(refusal(with([](RecordedAnswer& a) { a.times.target_steps.clear(); })), HasSubstr("at least one step"));
  Recording small = recording();
  small.settings.context = 3;
  small.settings.draft_context = 3;
  EXPECT_THAT(refusal(small), HasSubstr("in a context of 3"));
  Recording vast = recording();
  vast.settings.context = 1 << 30;
  EXPECT_THAT(refusal(vast), HasSubstr("context: expected 1..16777216"));
}

}  // namespace
}  // namespace test
}  // namespace tandem
