#include "src/engine/corpus_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "src/base/error.h"
#include "src/engine/config.h"
#include "src/engine/corpus_store.h"
#include "tests/base/temp_dir.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CorpusFiles : public ::testing::Test {
 protected:
  CorpusFiles() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    fs::create_directories(root() + "/sub/.git");
  }
  ~CorpusFiles() override { ::unsetenv("XDG_CACHE_HOME"); }

  std::string root() const { return fs::canonical(folder_.path()).string(); }
  CorpusUse load(const std::vector<std::string>& paths, const CorpusLimits& limits = {}) const {
    return load_corpus(paths, *tokenizer_, limits);
  }
  CorpusUse load() const { return load({root()}); }
  std::string refusal(const CorpusLimits& limits) const {
    try {
      load({root()}, limits);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    return "accepted";
  }
  // The documents, as text.
  std::vector<std::string> texts(const CorpusUse& use) const {
    std::vector<std::string> documents;
    std::string text;
    for (const TokenId token : use.index->tokens().subspan(1)) {
      if (token != Corpus::kBorder) {
        text += tokenizer_->bytes(token);
      } else if (!text.empty()) {
        documents.push_back(std::exchange(text, ""));
      }
    }
    return documents;
  }
  std::vector<fs::path> saved() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(cache_.path() + "/tandem")) files.push_back(entry.path());
    return files;
  }
  static std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TempDir folder_, cache_;
  std::unique_ptr<Tokenizer> tokenizer_ = make_tokenizer(tiny_vocabulary("qwen2", {{"a", "b"}}), "tiny");
};

TEST_F(CorpusFiles, TextsOfFilesAndFoldersComeByPathEachOnce) {
  folder_.file("b.txt", "second");
  folder_.file("a.txt", "first");
  folder_.file("sub/c.txt", "third");
  folder_.file("sub/empty.txt", "");
  folder_.file("sub/.git/config", "hidden");
  folder_.file(".hidden.txt", "hidden");
  const CorpusUse use = load({root() + "/sub/c.txt", root()});
  EXPECT_THAT(texts(use), ElementsAre("first", "second", "third"));
  EXPECT_EQ(use.files, 4);
  EXPECT_EQ(use.tokens(), std::string("firstsecondthird").size());
  EXPECT_THAT(use.skipped, IsEmpty());
  EXPECT_EQ(use.warning(), "");
  EXPECT_THAT(texts(load({root() + "/.hidden.txt"})), ElementsAre("hidden"));  // who names it wants it
}

TEST_F(CorpusFiles, WhatIsNoTextIsNamedAndLeftOut) {
  folder_.file("a.txt", "text");
  folder_.file("binary", std::string_view("a\0b", 3));
  folder_.file("large", std::string(101, 'x'));
  fs::create_symlink("/no/such", root() + "/nothing");
  fs::create_symlink("/proc/self/mem", root() + "/unreadable");
  fs::create_symlink("/dev/zero", root() + "/endless");
  fs::create_directory_symlink(root(), root() + "/sub/again");  // a circle
  const CorpusUse use = load({root()}, {.file_bytes = 100});
  EXPECT_THAT(texts(use), ElementsAre("text"));
  EXPECT_EQ(use.files, 1);
  EXPECT_THAT(use.skipped, ElementsAre(root() + "/binary (binary)", root() + "/endless (neither a file nor a folder)",
                                       root() + "/large (101 bytes, the limit of a file is 100 bytes)",
                                       root() + "/nothing (a link to nothing)",
                                       AllOf(HasSubstr(root() + "/unreadable ("), EndsWith("error)"))));
  EXPECT_THAT(use.warning(),
              AllOf(HasSubstr("draft.corpus leaves out " + root() + "/binary (binary), "), HasSubstr("/unreadable")));
  const CorpusUse again = load({root()}, {.file_bytes = 100});
  EXPECT_EQ(again.origin, "saved");
  EXPECT_EQ(again.skipped, use.skipped);
}

TEST_F(CorpusFiles, AWarningNamesFiveAndCountsTheRest) {
  for (char name = 'a'; name < 'a' + 8; ++name) folder_.file(std::string(1, name), std::string_view("\0", 1));
  EXPECT_THAT(load().warning(), AllOf(HasSubstr("/e (binary) and 3 more"), ::testing::Not(HasSubstr("/f"))));
  EXPECT_EQ(load().skipped.size(), 8u);
  EXPECT_EQ(load().index->longest(std::vector<TokenId>{1}).length, 0);
}

TEST_F(CorpusFiles, TooMuchTextIsRefusedNamingFileAndLimit) {
  folder_.file("a.txt", std::string(1 << 14, 'x'));
  folder_.file("b.txt", std::string(1 << 14, 'x'));
  EXPECT_THAT(refusal({.bytes = 3 << 13}), AllOf(HasSubstr(root() + "/b.txt (16.0 KiB)"), HasSubstr("32.0 KiB"),
                                                 HasSubstr("the limit is 24.0 KiB")));
  EXPECT_THAT(refusal({.files = 1}), AllOf(HasSubstr("at most 1 files"), HasSubstr(root())));
  EXPECT_EQ(refusal({.bytes = 2 << 14, .files = 2}), "accepted");
}

TEST_F(CorpusFiles, AnIndexIsSavedAndTakenAgainUntilAFileChanges) {
  const std::string file = folder_.file("a.txt", "abcabcab");
  const CorpusUse first = load(), second = load();
  EXPECT_EQ(first.origin, "indexed at load");
  EXPECT_EQ(second.origin, "saved");
  EXPECT_EQ(second.files, 1);
  EXPECT_TRUE(std::ranges::equal(first.index->tokens(), second.index->tokens()));
  EXPECT_TRUE(std::ranges::equal(first.index->order(), second.index->order()));

  folder_.file("a.txt", "abcabcabc");
  EXPECT_EQ(load().origin, "indexed at load");
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_EQ(load().origin, "indexed at load");
  folder_.file("b.txt", "x");
  EXPECT_EQ(load().origin, "indexed at load");
  EXPECT_EQ(load().origin, "saved");
  const auto other = make_tokenizer(tiny_vocabulary("qwen2", {{"b", "c"}}), "other");
  EXPECT_EQ(load_corpus({root()}, *other).origin, "indexed at load");
}

TEST_F(CorpusFiles, ASavedIndexThatIsCutChangedOrForeignIsBuiltAnew) {
  folder_.file("a.txt", "abcabcab");
  const CorpusUse truth = load();
  ASSERT_EQ(saved().size(), 1u);
  const fs::path file = saved().front();
  const std::string bytes = bytes_of(file);
  const auto expect_anew = [&](const std::string& content, const std::string& what) {
    std::ofstream(file, std::ios::binary) << content;
    const CorpusUse use = load();
    EXPECT_EQ(use.origin, "indexed at load") << what;
    EXPECT_TRUE(std::ranges::equal(use.index->order(), truth.index->order())) << what;
    EXPECT_EQ(bytes_of(file), bytes) << what;
  };
  for (std::size_t size = 0; size < bytes.size(); size += 13) expect_anew(bytes.substr(0, size), "cut");
  expect_anew(bytes + "x", "longer");
  for (std::size_t i = bytes.size() - 40; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    expect_anew(changed, "changed");
  }
  expect_anew("{}", "foreign");
  expect_anew(bytes.substr(0, bytes.find('\n') + 1) + "[]\n", "foreign");
  std::string other_key = bytes;
  const std::size_t key = other_key.find("\"key\":\"") + 7;
  other_key[key + 40] = other_key[key + 40] == '0' ? '1' : '0';
  expect_anew(other_key, "of another key");
  EXPECT_EQ(load().origin, "saved");
}

TEST_F(CorpusFiles, OnlyTheLatestIndexesAreKept) {
  for (int i = 0; i < kMostSavedCorpora + 3; ++i) {
    folder_.file("a.txt", std::string(static_cast<std::size_t>(i + 1), 'x'));
    load();
  }
  EXPECT_EQ(saved().size(), static_cast<std::size_t>(kMostSavedCorpora));
  EXPECT_EQ(load().origin, "saved");
}

TEST_F(CorpusFiles, ACacheThatCannotBeWrittenOnlyCostsTime) {
  folder_.file("a.txt", "text");
  ::setenv("XDG_CACHE_HOME", "/proc/none", 1);
  EXPECT_EQ(load().origin, "indexed at load");
  EXPECT_EQ(load().origin, "indexed at load");
}

TEST_F(CorpusFiles, APathIsResolvedFromItsFolderOrRefused) {
  EXPECT_EQ(find_corpus("sub/..", root()), root());
  EXPECT_EQ(find_corpus(root() + "/sub", "/"), root() + "/sub");
  EXPECT_THROW(find_corpus("none", root()), Error);
  EXPECT_THROW(find_corpus("", root()), Error);
}

}  // namespace
}  // namespace tandem::test
