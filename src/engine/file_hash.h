// SHA-256 of model files, remembered by path, size and modification time.
#pragma once
#include <string>
#include <string_view>

namespace tandem {

// Hex digest. The memory lies beside the models' default folder (~/.cache/tandem/hashes.json, or $XDG_CACHE_HOME); a
// damaged or unwritable one only costs time. Throws Error(file) when the file cannot be read.
std::string file_sha256(const std::string& path);

std::string text_sha256(std::string_view text);

}  // namespace tandem
