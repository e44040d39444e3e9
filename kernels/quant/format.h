// The element formats that weights come in: block geometry and exact decoding. One header a format beside this one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tandem {

// Values are GGUF's tensor type ids.
enum class Format : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30
};

struct FormatInfo {
  Format format;
  std::string_view name;  // as GGUF spells it, e.g. "Q4_K"
  int block_values;       // values a block
  int block_bytes;        // bytes a block
};

// Geometry of a known format; nullopt for an id this build does not read.
std::optional<FormatInfo> format_info(std::uint32_t type_id);
const FormatInfo& format_info(Format format);

// Decodes whole blocks to floats, exactly as the format defines. `out.size()` is a multiple of block_values and
// `blocks` holds the matching number of bytes.
void decode_blocks(Format format, std::span<const std::byte> blocks, std::span<float> out);

// Encodes values to whole blocks of Q8_0, as GGUF's reference does, or Q4_0, closer than it does (q4_0.h says how);
// sizes as for decode_blocks. Throws Error(model) for another format.
void encode_blocks(Format format, std::span<const float> values, std::span<std::byte> out);

// Bytes of `values` values, which fill whole blocks.
std::size_t encoded_bytes(Format format, std::size_t values);

}  // namespace tandem
