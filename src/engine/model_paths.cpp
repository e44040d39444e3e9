// Where the files that a config or a command names are.
#include <cstdlib>
#include <filesystem>

#include "src/base/error.h"
#include "src/base/yaml_tree.h"
#include "src/engine/config.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// The absolute path with links and dots of its folder resolved; the file's own name stays, for messages.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path folder = fs::weakly_canonical(fs::absolute(path, error).parent_path(), error);
  return (error ? path.parent_path() : folder) / path.filename();
}

// The first of the places that is a file.
std::string find_in(const std::vector<fs::path>& places, const std::string& value, ErrorKind kind) {
  // A file name with a zero byte would be cut short by the system and name another file.
  if (value.find('\0') != std::string::npos) fail(kind, "expected a file name, got one with a zero byte");
  std::vector<std::string> tried;
  for (const fs::path& place : places) {
    std::error_code error;
    const fs::file_status status = fs::status(place, error);
    const fs::path path = resolved(place);
    if (fs::exists(status) && !fs::is_directory(status)) return path.string();
    const bool missing = status.type() == fs::file_type::not_found;
    tried.push_back(path.string() + (missing                    ? ""
                                     : fs::is_directory(status) ? " (a folder)"
                                                                : " (" + error.message() + ")"));
  }
  fail(kind, "no file {}, tried {}", shown_text(value), joined_choices(tried));
}

}  // namespace

std::string model_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  std::string folder = variable("TANDEM_MODELS");
  if (!folder.empty()) return folder;
  const std::string home = variable("HOME");
  return (home.empty() ? "." : home) + "/.cache/tandem/models";
}

std::string find_model(const std::string& value, const std::string& base_folder, ErrorKind kind) {
  std::vector<fs::path> places = {fs::path(base_folder) / value};
  if (value.find('/') == std::string::npos) places.push_back(fs::path(model_folder()) / value);
  return find_in(places, value, kind);
}

std::string find_file(const std::string& value, const std::string& base_folder) {
  return find_in({fs::path(base_folder) / value}, value, ErrorKind::config);
}

std::string find_corpus(const std::string& value, const std::string& base_folder) {
  if (value.empty() || value.find('\0') != std::string::npos) {
    fail(ErrorKind::config, "expected files or folders, got {}", shown_text(value));
  }
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::path(base_folder) / value, error);
  if (error || !fs::exists(path, error)) {
    fail(ErrorKind::config, "no file or folder {}, tried {}{}", shown_text(value),
         (error ? fs::path(base_folder) / value : path).string(), error ? " (" + error.message() + ")" : "");
  }
  return path.string();
}

}  // namespace tandem
