#include "src/engine/corpus_store.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "src/base/error.h"
#include "src/base/mapped_file.h"
#include "src/engine/file_hash.h"
#include "src/engine/user_cache.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "corpus-";
constexpr std::string_view kVersionLine = "tandem corpus index, version 1\n";

std::string name_of(const std::string& key) { return fmt::format("{}{}.bin", kPrefix, key.substr(0, 16)); }

std::string_view bytes_of(std::span<const std::int32_t> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

// Lines of text, then the two arrays as they lie in memory.
std::string header_of(const std::string& key, const CorpusUse& use) {
  const Corpus& index = *use.index;
  const nlohmann::json about = {{"key", key},
                                {"files", use.files},
                                {"skipped", use.skipped},
                                {"tokens", index.tokens().size()},
                                {"order", index.order().size()},
                                {"tokens_sha256", text_sha256(bytes_of(index.tokens()))},
                                {"order_sha256", text_sha256(bytes_of(index.order()))}};
  return std::string(kVersionLine) + about.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

// The next `count` numbers of `data`, which are taken off it, if they are there and of this hash.
std::optional<std::vector<std::int32_t>> take_numbers(std::string_view& data, std::size_t count,
                                                      const std::string& sha256) {
  if (count > data.size() / sizeof(std::int32_t)) return std::nullopt;
  const std::string_view bytes = data.substr(0, count * sizeof(std::int32_t));
  if (text_sha256(bytes) != sha256) return std::nullopt;
  std::vector<std::int32_t> numbers(count);
  if (count > 0) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  data.remove_prefix(bytes.size());
  return numbers;
}

std::optional<CorpusUse> parse(std::string_view data, const std::string& key, int vocabulary) {
  if (!data.starts_with(kVersionLine)) return std::nullopt;
  data.remove_prefix(kVersionLine.size());
  const std::size_t end = data.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const auto about = nlohmann::json::parse(data.substr(0, end));
  data.remove_prefix(end + 1);
  if (about.at("key") != key) return std::nullopt;
  auto tokens = take_numbers(data, about.at("tokens"), about.at("tokens_sha256"));
  if (!tokens) return std::nullopt;
  auto order = take_numbers(data, about.at("order"), about.at("order_sha256"));
  if (!order || !data.empty()) return std::nullopt;
  return CorpusUse{.index = std::make_shared<const Corpus>(*std::move(tokens), *std::move(order), vocabulary),
                   .files = about.at("files"),
                   .skipped = about.at("skipped"),
                   .origin = "saved"};
}

// Files of the folder that hold an index, the latest first.
std::vector<fs::path> saved_indexes(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    const fs::file_time_type time = entry->last_write_time(unreadable);
    const std::string name = entry->path().filename().string();
    if (!unreadable && name.starts_with(kPrefix) && name.ends_with(".bin")) found.emplace_back(time, entry->path());
  }
  std::ranges::sort(found, std::greater<>());
  std::vector<fs::path> paths;
  for (const auto& [time, path] : found) paths.push_back(path);
  return paths;
}

}  // namespace

std::optional<CorpusUse> read_corpus(const std::string& key, int vocabulary) {
  const std::string path = user_cache_file(name_of(key));
  try {
    const MappedFile file(path);
    const std::string_view data(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    std::optional<CorpusUse> use = parse(data, key, vocabulary);
    std::error_code ignored;
    if (use) fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return use;
  } catch (const Error&) {  // no such file, or tokens that no corpus holds
  } catch (const nlohmann::json::exception&) {
  }
  return std::nullopt;
}

void write_corpus(const std::string& key, const CorpusUse& use) {
  const std::string header = header_of(key, use);
  write_user_cache_file(name_of(key), {header, bytes_of(use.index->tokens()), bytes_of(use.index->order())});
  const std::vector<fs::path> saved = saved_indexes(fs::path(user_cache_file(name_of(key))).parent_path());
  for (std::size_t i = kMostSavedCorpora; i < saved.size(); ++i) {
    std::error_code ignored;
    fs::remove(saved[i], ignored);
  }
}

}  // namespace tandem
