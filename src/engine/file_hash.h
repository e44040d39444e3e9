// SHA-256 of model files, remembered by path, size and modification time.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

// Hex digest. The memory lies beside the models' default folder (~/.cache/tandem/hashes.json, or $XDG_CACHE_HOME); a
// damaged or unwritable one only costs time. Throws Error(file) when the file cannot be read.
std::string file_sha256(const std::string& path);

std::string text_sha256(std::string_view text);

// The digest of bytes that come in parts.
class Sha256 {
 public:
  Sha256();  // throws Error(file) where OpenSSL was built without it
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string hex();  // of all that was added; nothing may be added afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
