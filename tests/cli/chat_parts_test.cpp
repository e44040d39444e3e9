// How entries of a chat are read, and how drafts are coloured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "src/cli/chat_entry.h"
#include "src/cli/draft_colours.h"

namespace tandem::test {
namespace {

using Kind = ChatEntry::Kind;

class ScriptedLines : public LineReader {
 public:
  explicit ScriptedLines(std::deque<Line> lines) : lines_(std::move(lines)) {}
  Line read(const std::string& prompt) override {
    prompts.push_back(prompt);
    if (lines_.empty()) return {Line::Kind::end, {}};
    Line line = lines_.front();
    lines_.pop_front();
    return line;
  }
  bool interactive() const override { return false; }

  std::vector<std::string> prompts;

 private:
  std::deque<Line> lines_;
};

ChatEntry entry_of(const std::vector<std::string>& texts, bool interrupted = false) {
  std::deque<Line> lines;
  for (const std::string& text : texts) lines.push_back({Line::Kind::text, text});
  if (interrupted) lines.push_back({Line::Kind::interrupted, {}});
  ScriptedLines reader(std::move(lines));
  return read_entry(reader);
}

void expect_entry(const ChatEntry& entry, Kind kind, const std::string& text) {
  EXPECT_EQ(entry.kind, kind);
  EXPECT_EQ(entry.text, text);
}

TEST(ChatEntry, ALineIsAMessageOrACommand) {
  expect_entry(entry_of({"hello", "next"}), Kind::message, "hello");
  expect_entry(entry_of({"/save a b"}), Kind::command, "/save a b");
  expect_entry(entry_of({" /no"}), Kind::message, " /no");
  expect_entry(entry_of({""}), Kind::message, "");
  expect_entry(entry_of({}), Kind::end, "");
  expect_entry(entry_of({}, true), Kind::interrupted, "");
}

TEST(ChatEntry, ABackslashGoesOnWithTheNextLine) {
  expect_entry(entry_of({"a\\", "b\\", "c", "d"}), Kind::message, "a\nb\nc");
  expect_entry(entry_of({"a\\"}), Kind::message, "a");  // the input ends
  expect_entry(entry_of({"a\\"}, true), Kind::interrupted, "");
  ScriptedLines reader({{Line::Kind::text, "a\\"}, {Line::Kind::text, "b"}});
  read_entry(reader);
  EXPECT_THAT(reader.prompts, ::testing::ElementsAre("> ", "... "));
}

TEST(ChatEntry, LinesThatWerePastedTogetherAreOneMessage) {
  const auto pasted = [](const std::vector<std::string>& texts) {
    std::deque<Line> lines;
    for (const std::string& text : texts) lines.push_back({Line::Kind::text, text, lines.size() + 1 < texts.size()});
    ScriptedLines reader(std::move(lines));
    return read_entry(reader);
  };
  expect_entry(pasted({"a", "", "/b", "c"}), Kind::message, "a\n\n/b\nc");
  expect_entry(pasted({"a\\", "b"}), Kind::message, "a\\\nb");  // a backslash of the text itself
  expect_entry(pasted({"/reset", "a"}), Kind::command, "/reset");
  ScriptedLines cut({{Line::Kind::text, "a", true}});
  expect_entry(read_entry(cut), Kind::message, "a");
}

TEST(ChatEntry, ABlockTakesLinesAsTheyAre) {
  expect_entry(entry_of({"\"\"\"", "a\\", "", "/b", "\"\"\"", "c"}), Kind::message, "a\\\n\n/b");
  expect_entry(entry_of({"\"\"\"/a", "b\"\"\""}), Kind::message, "/a\nb");
  expect_entry(entry_of({"\"\"\"/one line\"\"\""}), Kind::message, "/one line");
  expect_entry(entry_of({"\"\"\"", "a"}), Kind::message, "a");
  expect_entry(entry_of({"\"\"\"", "a"}, true), Kind::interrupted, "");
}

// What a terminal shows: `[` and `]` stand for the begin and end of a colour.
std::string shown(std::string text) {
  for (const auto& [sequence, sign] :
       {std::pair("\033[0m", "]"), std::pair("\033[36m", "["), std::pair("\033[32m", "{")}) {
    for (std::size_t at; (at = text.find(sequence)) != text.npos;) text.replace(at, std::string(sequence).size(), sign);
  }
  return text;
}

const std::vector<TextOrigin> kOrigins{
    {2, DraftSource::none}, {4, DraftSource::ngram}, {4, DraftSource::model}, {7, DraftSource::model}};

TEST(DraftColours, SurroundTheTextOfEachSource) {
  DraftColours colours(true);
  EXPECT_EQ(shown(colours.paint("abcdefg", kOrigins)), "ab[cd]{efg]");
}

TEST(DraftColours, GoOnWhereTheLastPartEnded) {
  for (std::size_t cut = 0; cut <= 7; ++cut) {
    DraftColours colours(true);
    const std::string text = "abcdefg";
    std::string painted = colours.paint(text.substr(0, cut), kOrigins) + colours.paint(text.substr(cut), kOrigins);
    for (const char* sequence : {"\033[0m", "\033[36m", "\033[32m"}) {
      for (std::size_t at; (at = painted.find(sequence)) != painted.npos;)
        painted.erase(at, std::string(sequence).size());
    }
    EXPECT_EQ(painted, text);
  }
  DraftColours colours(true);
  EXPECT_EQ(shown(colours.paint("abc", kOrigins)), "ab[c]");
  EXPECT_EQ(shown(colours.paint("defg", kOrigins)), "[d]{efg]");
}

TEST(DraftColours, NeverDivideACharacter) {
  DraftColours colours(true);
  const std::vector<TextOrigin> origins{{1, DraftSource::none}, {2, DraftSource::ngram}, {5, DraftSource::none}};
  EXPECT_EQ(shown(colours.paint("\xE2\x82\xAC"
                                "x",
                                origins)),
            "\xE2\x82\xAC"
            "x");
  DraftColours more(true);
  const std::vector<TextOrigin> drafted{{1, DraftSource::ngram}, {3, DraftSource::none}, {4, DraftSource::none}};
  EXPECT_EQ(shown(more.paint("\xE2\x82\xAC"
                             "x",
                             drafted)),
            "[\xE2\x82\xAC]x");
}

TEST(DraftColours, ChangeNothingWhenOff) {
  DraftColours colours(false);
  EXPECT_EQ(colours.paint("abcdefg", kOrigins), "abcdefg");
}

TEST(DraftColours, AreForTerminalsUnlessForced) {
  EXPECT_TRUE(wants_colour("always", -1));
  EXPECT_FALSE(wants_colour("never", 1));
  EXPECT_FALSE(wants_colour("auto", -1));
}

}  // namespace
}  // namespace tandem::test
