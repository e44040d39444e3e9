#include "src/engine/file_hash.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"

namespace tandem::test {
namespace {

// FIPS 180-2, appendix B.1.
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class FileHashTest : public ::testing::Test {
 protected:
  FileHashTest() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~FileHashTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  std::string memory() const {
    std::ifstream in(folder_.path() + "/tandem/hashes.json");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void write_memory(const std::string& text) const { std::ofstream(folder_.path() + "/tandem/hashes.json") << text; }

  TempDir folder_;
};

TEST_F(FileHashTest, DigestIsSha256) {
  EXPECT_EQ(text_sha256("abc"), kAbc);
  EXPECT_EQ(file_sha256(folder_.file("abc", "abc")), kAbc);
}

TEST_F(FileHashTest, DigestIsRememberedUntilTheFileChanges) {
  const std::string path = folder_.file("abc", "abc");
  file_sha256(path);
  std::string told = memory();
  const std::size_t at = told.find(kAbc);
  ASSERT_NE(at, std::string::npos);
  write_memory(told.replace(at, 4, "0000"));
  EXPECT_EQ(file_sha256(path).substr(0, 4), "0000");  // so the file was not read again
  folder_.file("abc", "abcd");
  EXPECT_EQ(file_sha256(path), text_sha256("abcd"));
}

TEST_F(FileHashTest, DamagedMemoryOnlyCostsTime) {
  const std::string path = folder_.file("abc", "abc");
  file_sha256(path);
  for (const std::string& text :
       std::vector<std::string>{"", "{", "[1]", "{\"" + path + "\": 3}", "{\"" + path + "\": {\"size\": \"x\"}}"}) {
    write_memory(text);
    EXPECT_EQ(file_sha256(path), kAbc) << text;
  }
}

TEST_F(FileHashTest, NameThatIsNoUtf8IsHashed) {
  const std::string path = folder_.file("a\xff\xfe", "abc");
  EXPECT_EQ(file_sha256(path), kAbc);
  EXPECT_EQ(file_sha256(path), kAbc);
}

TEST_F(FileHashTest, MissingFileIsAnError) { EXPECT_THROW(file_sha256(folder_.path() + "/none"), Error); }

}  // namespace
}  // namespace tandem::test
