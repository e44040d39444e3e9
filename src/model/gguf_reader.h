// Parses the head of a GGUF file (metadata and tensor directory) from bytes in memory, trusting none of them.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/model/gguf.h"

namespace tandem {

struct GgufDirectory {
  int version;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  // in file order; their data points into the bytes that were read
};

// Reads versions 2 and 3, little-endian. `file_name` opens every message. Throws Error(file) naming key or tensor,
// needed and actual size; memory stays in proportion to what the file really holds, whatever its counts claim. Format:
// the GGUF specification, github.com/ggml-org/ggml/blob/master/docs/gguf.md.
GgufDirectory read_gguf_directory(std::span<const std::byte> file, std::string_view file_name);

}  // namespace tandem
