#include "src/engine/file_hash.h"

#include <openssl/evp.h>

#include <array>

#include "src/base/error.h"
#include "src/base/mapped_file.h"
#include "src/engine/user_cache.h"

namespace tandem {
namespace {

void require(int status) {
  if (status != 1) fail(ErrorKind::file, "SHA-256 is not available in this build of OpenSSL");
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

}  // namespace

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context ? EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  require(EVP_DigestFinal_ex(state_->context.get(), bytes.data(), &length));
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

std::string text_sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

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
  const std::string hex = sha256(mapped.bytes());
  memory[file.path] = {{"size", file.size}, {"time", file.nanoseconds_since_1970}, {"sha256", hex}};
  write_user_cache(kMemory, memory);
  return hex;
}

}  // namespace tandem
