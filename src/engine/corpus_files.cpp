#include "src/engine/corpus_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "src/base/error.h"
#include "src/engine/corpus_store.h"
#include "src/engine/file_hash.h"
#include "src/engine/user_cache.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string shown_size(std::uintmax_t bytes) {
  if (bytes < 1 << 10) return fmt::format("{} bytes", bytes);
  const auto size = static_cast<double>(bytes);
  return bytes < 1 << 20 ? fmt::format("{:.1f} KiB", size / (1 << 10)) : fmt::format("{:.1f} MiB", size / (1 << 20));
}

// What the paths lead to.
class Listing {
 public:
  Listing(const std::vector<std::string>& paths, const CorpusLimits& limits) : limits_(limits) {
    for (const std::string& path : paths) add(path);
    const auto by_path = [](const FileIdentity& a, const FileIdentity& b) { return a.path < b.path; };
    std::ranges::sort(files_, by_path);
    std::ranges::sort(skipped_);
    const auto same = [](const FileIdentity& a, const FileIdentity& b) { return a.path == b.path; };
    files_.erase(std::unique(files_.begin(), files_.end(), same), files_.end());
  }

  const std::vector<FileIdentity>& files() const { return files_; }
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  void add(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) return skip(path, "a link to nothing");
    if (error) return skip(path, error.message());
    if (fs::is_directory(status)) return add_folder(path);
    if (!fs::is_regular_file(status)) return skip(path, "neither a file nor a folder");
    if (files_.size() == limits_.files) {
      fail(ErrorKind::config, "expected at most {} files, {} is one more", limits_.files, path.string());
    }
    const std::uintmax_t size = fs::file_size(path, error);
    if (size > limits_.file_bytes) {
      return skip(path, fmt::format("{}, the limit of a file is {}", shown_size(size), shown_size(limits_.file_bytes)));
    }
    files_.push_back(identity_of(path.string()));
  }

  void add_folder(const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const bool hidden = entry->path().filename().string().starts_with('.');
      std::error_code unreadable;
      const bool linked_folder = entry->is_symlink(unreadable) && entry->is_directory(unreadable);
      if (!hidden && !linked_folder) add(entry->path());
    }
    if (error) skip(folder, error.message());
  }

  void skip(const fs::path& path, const std::string& reason) {
    skipped_.push_back(fmt::format("{} ({})", path.string(), reason));
  }

  const CorpusLimits& limits_;
  std::vector<FileIdentity> files_;
  std::vector<std::string> skipped_;
};

// Everything that decides which ids a text becomes.
std::string identity_of(const Vocabulary& vocabulary) {
  std::string text = fmt::format("{}\n{}\n{}\n{} {}\n", vocabulary.model, vocabulary.pre, vocabulary.size(),
                                 vocabulary.add_space_prefix, vocabulary.remove_extra_spaces);
  for (const std::string& token : vocabulary.tokens) text.append(token).push_back('\0');
  for (const TokenType type : vocabulary.types) text.push_back(static_cast<char>(type));
  for (const std::string& merge : vocabulary.merges) text.append(merge).push_back('\0');
  for (const float score : vocabulary.scores) text += fmt::format("{} ", score);
  return text_sha256(text);
}

std::string key_of(const Listing& listing, const Vocabulary& vocabulary) {
  std::string text = identity_of(vocabulary);
  for (const FileIdentity& file : listing.files()) {
    text += fmt::format("\n{} bytes, time {}, {}", file.size, file.nanoseconds_since_1970, file.path);
  }
  // Left out as much as taken, so that what is said of it is of today.
  for (const std::string& name : listing.skipped()) text += "\nwithout " + name;
  return text_sha256(text);
}

// The reason why there is no text, empty when there is. Takes what the file was listed with, and one byte more of a
// file that has grown.
std::string read_text(const FileIdentity& file, std::string& text) {
  errno = 0;
  std::ifstream in(file.path, std::ios::binary);
  text.resize(file.size + 1);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) return std::strerror(errno);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.find('\0') != std::string::npos) return "binary";
  return {};
}

CorpusUse index(const Listing& listing, const Tokenizer& tokenizer, const CorpusLimits& limits) {
  CorpusUse use{.index = nullptr, .files = 0, .skipped = listing.skipped(), .origin = "indexed at load"};
  std::vector<TokenId> tokens{Corpus::kBorder};
  std::uintmax_t bytes = 0;
  std::string text;
  for (const FileIdentity& file : listing.files()) {
    if (const std::string reason = read_text(file, text); !reason.empty()) {
      use.skipped.push_back(fmt::format("{} ({})", file.path, reason));
      continue;
    }
    bytes += text.size();
    if (bytes > limits.bytes) {
      fail(ErrorKind::config, "{} ({}) makes it {} of text, the limit is {}: name fewer files or folders", file.path,
           shown_size(text.size()), shown_size(bytes), shown_size(limits.bytes));
    }
    const std::vector<TokenId> ids = tokenizer.encode(text, Specials::literal);
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    tokens.push_back(Corpus::kBorder);
    ++use.files;
  }
  tokens.push_back(Corpus::kBorder);  // also where there is no text at all
  tokens.shrink_to_fit();
  use.index = std::make_shared<const Corpus>(std::move(tokens));
  std::ranges::sort(use.skipped);
  return use;
}

}  // namespace

std::size_t CorpusUse::tokens() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(index->tokens(), [](TokenId token) { return token != Corpus::kBorder; }));
}

std::string CorpusUse::warning() const {
  constexpr std::size_t kNamed = 5;
  if (skipped.empty()) return {};
  std::string text =
      fmt::format("draft.corpus leaves out {}",
                  fmt::join(skipped.begin(),
                            skipped.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, skipped.size())), ", "));
  if (skipped.size() > kNamed) text += fmt::format(" and {} more (the JSON report names all)", skipped.size() - kNamed);
  return text;
}

CorpusUse load_corpus(const std::vector<std::string>& paths, const Tokenizer& tokenizer, const CorpusLimits& limits) {
  const Listing listing(paths, limits);
  const std::string key = key_of(listing, tokenizer.vocabulary());
  if (std::optional<CorpusUse> saved = read_corpus(key, tokenizer.vocabulary().size())) return *std::move(saved);
  CorpusUse use = index(listing, tokenizer, limits);
  write_corpus(key, use);
  return use;
}

}  // namespace tandem
