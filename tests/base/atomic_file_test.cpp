// A file that is replaced whole or left as it was.
#include "src/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

int entries(const std::string& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, ReplacesTheOldFileAtCommitAndNotBefore) {
  const TempDir folder;
  const std::string path = folder.file("a.txt", "old");
  {
    AtomicFile file(path);
    file.write("new ");
    file.write("text");
    EXPECT_EQ(content(path), "old");
    file.commit();
    EXPECT_EQ(content(path), "new text");
  }
  EXPECT_EQ(content(path), "new text");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFile, LeavesNothingBehindWithoutCommit) {
  const TempDir folder;
  const std::string path = folder.file("a.txt", "old");
  { AtomicFile(path).write("half"); }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFile, OnlyItsOwnerCanReadIt) {
  const TempDir folder;
  const std::string path = folder.path() + "/a.txt";
  AtomicFile file(path);
  file.commit();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(AtomicFile, APlaceThatCannotBeWrittenIsNamed) {
  const TempDir folder;
  for (const std::string& path : {folder.path() + "/missing/a.txt", folder.path()}) {
    try {
      AtomicFile file(path);
      ADD_FAILURE() << "no error for " << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      EXPECT_THAT(error.what(), HasSubstr(path + ": cannot be written: "));
    }
  }
}

}  // namespace
}  // namespace tandem::test
