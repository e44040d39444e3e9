#include "src/engine/file_hash.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/mapped_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

fs::path memory_path() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0) {
    return fs::path(cache) / "tandem" / "hashes.json";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
    return fs::path(home) / ".cache" / "tandem" / "hashes.json";
  }
  return {};
}

nlohmann::json read_memory(const fs::path& path) {
  std::ifstream in(path);
  nlohmann::json memory = nlohmann::json::parse(in, nullptr, false);
  return memory.is_object() ? memory : nlohmann::json::object();
}

// Written beside and renamed, so that two runs at once never leave half a file.
void write_memory(const fs::path& path, const nlohmann::json& memory) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const fs::path beside = path.string() + "." + std::to_string(getpid());
  {
    std::ofstream out(beside);
    // A path need not be UTF-8; one that is not is hashed anew each time.
    if (!(out << memory.dump(1, ' ', false, nlohmann::json::error_handler_t::replace))) return;
  }
  fs::rename(beside, path, ignored);
}

std::string sha256(const void* data, std::size_t size) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  if (EVP_Digest(data, size, bytes.data(), &length, EVP_sha256(), nullptr) != 1) {
    fail(ErrorKind::file, "SHA-256 is not available in this build of OpenSSL");
  }
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

}  // namespace

std::string text_sha256(std::string_view text) { return sha256(text.data(), text.size()); }

std::string file_sha256(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) fail(ErrorKind::file, "{}: cannot be read: {}", path, error.message());
  const auto time = fs::last_write_time(path).time_since_epoch().count();
  const std::string key = fs::absolute(path).string();
  const fs::path where = memory_path();
  nlohmann::json memory = where.empty() ? nlohmann::json::object() : read_memory(where);
  const auto known = memory.find(key);
  if (known != memory.end() && known->is_object() && (*known)["size"] == size && (*known)["time"] == time &&
      (*known)["sha256"].is_string()) {
    return (*known)["sha256"];
  }
  const MappedFile file(path);
  const std::string hex = sha256(file.bytes().data(), file.bytes().size());
  memory[key] = {{"size", size}, {"time", time}, {"sha256", hex}};
  if (!where.empty()) write_memory(where, memory);
  return hex;
}

}  // namespace tandem
