// Files of the user's cache folder: what is costly to find out and cheap to remember.
#pragma once
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tandem {

// The object in `name` of ~/.cache/tandem ($XDG_CACHE_HOME/tandem); empty when there is none or it is damaged.
nlohmann::json read_user_cache(const std::string& name);
// Replaces it. A folder that cannot be written only costs time at the next run.
void write_user_cache(const std::string& name, const nlohmann::json& object);

// The path of the file `name` there, whether or not it exists; empty when the user has no home.
std::string user_cache_file(const std::string& name);
// Replaces that file by these parts, one after the other: readers find the old one or the new one, never half of it.
void write_user_cache_file(const std::string& name, std::initializer_list<std::string_view> parts);

// A file by its path, size and modification time. Throws Error(file) when it cannot be read.
struct FileIdentity {
  std::string path;
  std::uintmax_t size;
  std::int64_t nanoseconds_since_1970;  // of its last change
};
FileIdentity identity_of(const std::string& path);

}  // namespace tandem
