#include "src/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <string_view>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The message of the Error(file) that mapping this path throws; empty when it maps.
std::string refusal(const std::string& path) {
  try {
    const MappedFile file(path);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    return error.what();
  }
}

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const test::TempDir folder;
  const std::string path = folder.file("a.bin", std::string_view("one\0two", 7));
  const MappedFile file(path);
  EXPECT_EQ(text_of(file), std::string_view("one\0two", 7));
  EXPECT_EQ(file.path(), path);
}

TEST(MappedFile, RefusesWhatIsNoFileWithContent) {
  const test::TempDir folder;
  const std::string missing = folder.path() + "/none.gguf";
  EXPECT_THAT(refusal(missing), AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr(folder.path()), HasSubstr("directory")));
  EXPECT_THAT(refusal(folder.file("empty.gguf", "")), AllOf(HasSubstr("empty.gguf"), HasSubstr("0 bytes")));
  EXPECT_THAT(refusal(""), HasSubstr("No such file"));
}

TEST(MappedFile, DoesNotWaitForAPipe) {
  const test::TempDir folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), HasSubstr("pipe"));
}

TEST(MappedFile, KeepsItsContentAfterRelease) {
  const test::TempDir folder;
  std::string content(100'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 % 251);
  const MappedFile file(folder.file("a.bin", content));
  ASSERT_EQ(text_of(file), content);
  file.release(file.bytes());
  file.release(file.bytes().subspan(5000, 40'000));
  file.release(file.bytes().subspan(10, 3));
  file.release({});
  EXPECT_EQ(text_of(file), content);
}

}  // namespace
}  // namespace tandem
