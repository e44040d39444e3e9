// Conversations on disk: what is written is read back, and anything else is refused with its place.
#include "src/engine/conversation_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void expect_same(const ConversationState& a, const ConversationState& b) {
  EXPECT_EQ(a.system, b.system);
  EXPECT_EQ(a.first_kept, b.first_kept);
  EXPECT_EQ(a.dropped_tokens, b.dropped_tokens);
  ASSERT_EQ(a.messages.size(), b.messages.size());
  for (std::size_t i = 0; i < a.messages.size(); ++i) {
    EXPECT_EQ(a.messages[i].role, b.messages[i].role);
    EXPECT_EQ(a.messages[i].content, b.messages[i].content);
  }
}

TEST(ConversationFile, HoldsEveryByteOfAConversation) {
  const TempDir folder;
  const std::string path = folder.path() + "/chat.json";
  ConversationState state{.system = "Be \"brief\".\n", .messages = {}, .first_kept = 2, .dropped_tokens = 77};
  state.messages = {{"user", "héllo\\n\x01"},
                    {"assistant", std::string("cut within a character \xE6\xAD")},
                    {"user", std::string("a zero \0 byte", 13)},
                    {"assistant", ""}};
  write_conversation(path, state, {{"model", "m"}});
  const SavedConversation read = read_conversation(path);
  expect_same(read.state, state);
  EXPECT_EQ(read.about["model"], "m");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(ConversationFile, MessagesAloneAreEnough) {
  const TempDir folder;
  const SavedConversation read = read_conversation(
      folder.file("a.json", R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]})"));
  expect_same(read.state, {.system = "s", .messages = {{"user", "u"}}});
  EXPECT_TRUE(read.about.is_null());
}

TEST(ConversationFile, AnythingElseIsRefusedWithItsPlace) {
  const TempDir folder;
  const auto message = [](const std::string& fields) { return R"({"messages": [{)" + fields + "}]}"; };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"not json", "no JSON at byte"},
      {"[]", "expected an object with messages, got []"},
      {"{}", "messages: expected a value, got nothing"},
      {R"({"messages": 5})", "messages: expected a list, got 5"},
      {R"({"messages": [5]})", "messages[0]: expected an object with role, got 5"},
      {message(R"("role": "user")"), "messages[0]: content: expected a value, got nothing"},
      {message(R"("role": 1, "content": "x")"), "messages[0]: role: expected a text, got 1"},
      {message(R"("role": "tool", "content": "x")"), "expected system, user or assistant, got \"tool\""},
      {message(R"("role": "user", "content": "x", "bytes": [1, 256])"), "expected integers 0..255, got 256"},
      {message(R"("role": "user", "content": "x", "bytes": 7)"), "bytes: expected a list, got 7"},
      {R"({"messages": [], "dropped_messages": 1})", "dropped_messages: expected an integer 0..0, got 1"},
      {R"({"messages": [], "dropped_tokens": -1})", "dropped_tokens: expected an integer 0..4294967295, got -1"},
  };
  for (const auto& [content, says] : cases) {
    const std::string path = folder.file("bad.json", content);
    try {
      read_conversation(path);
      ADD_FAILURE() << content;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      EXPECT_THAT(error.what(), AllOf(StartsWith(path), HasSubstr(says))) << content;
    }
  }
  EXPECT_THROW(read_conversation(folder.path() + "/none.json"), Error);
}

}  // namespace
}  // namespace tandem::test
