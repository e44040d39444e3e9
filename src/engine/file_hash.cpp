#include "src/engine/file_hash.h"

#include <openssl/evp.h>

#include <array>

#include "src/base/error.h"
#include "src/base/mapped_file.h"
#include "src/engine/user_cache.h"

namespace tandem {
namespace {

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
  constexpr const char* kMemory = "hashes.json";
  const FileIdentity file = identity_of(path);
  nlohmann::json memory = read_user_cache(kMemory);
  const auto known = memory.find(file.path);
  if (known != memory.end() && known->is_object() && (*known)["size"] == file.size &&
      (*known)["time"] == file.nanoseconds_since_1970 && (*known)["sha256"].is_string()) {
    return (*known)["sha256"];
  }
  const MappedFile mapped(path);
  const std::string hex = sha256(mapped.bytes().data(), mapped.bytes().size());
  memory[file.path] = {{"size", file.size}, {"time", file.nanoseconds_since_1970}, {"sha256", hex}};
  write_user_cache(kMemory, memory);
  return hex;
}

}  // namespace tandem
