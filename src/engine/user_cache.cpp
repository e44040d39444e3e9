#include "src/engine/user_cache.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/atomic_file.h"
#include "src/base/error.h"

namespace tandem {
namespace fs = std::filesystem;

std::string user_cache_file(const std::string& name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0) {
    return (fs::path(cache) / "tandem" / name).string();
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
    return (fs::path(home) / ".cache" / "tandem" / name).string();
  }
  return {};
}

nlohmann::json read_user_cache(const std::string& name) {
  std::stringstream text;  // reading it straight from a file would throw where that is a folder
  text << std::ifstream(user_cache_file(name)).rdbuf();
  nlohmann::json object = nlohmann::json::parse(text.str(), nullptr, false);
  return object.is_object() ? object : nlohmann::json::object();
}

void write_user_cache(const std::string& name, const nlohmann::json& object) {
  // A path need not be UTF-8; what is filed under one that is not is found out anew each time.
  write_user_cache_file(name, {object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)});
}

void write_user_cache_file(const std::string& name, std::initializer_list<std::string_view> parts) {
  const fs::path path = user_cache_file(name);
  if (path.empty()) return;
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  try {
    AtomicFile file(path.string());
    for (const std::string_view part : parts) file.write(part);
    file.commit();
  } catch (const Error&) {
    // What cannot be remembered is found out again.
  }
}

FileIdentity identity_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) fail(ErrorKind::file, "{}: cannot be read: {}", path, error.message());
  // The file clock's own epoch lies elsewhere.
  const auto changed = std::chrono::file_clock::to_sys(fs::last_write_time(path)).time_since_epoch();
  return {fs::absolute(path).string(), size, std::chrono::duration_cast<std::chrono::nanoseconds>(changed).count()};
}

}  // namespace tandem
