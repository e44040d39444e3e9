#include "kernels/quant/format.h"

#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "src/base/error.h"

namespace tandem {
namespace {

struct Entry {
  FormatInfo info;
  void (*decode)(const std::byte* blocks, std::size_t count, float* out);
};

template <typename Block>
void decode_all(const std::byte* bytes, std::size_t count, float* __restrict out) {
  const auto* blocks = reinterpret_cast<const Block*>(bytes);
  for (std::size_t i = 0; i < count; ++i) decode(blocks[i], out + i * Block::kInfo.block_values);
}

template <typename Block>
void encode_all(const float* values, std::size_t count, std::byte* bytes) {
  auto* blocks = reinterpret_cast<Block*>(bytes);
  for (std::size_t i = 0; i < count; ++i) encode(values + i * Block::kInfo.block_values, blocks[i]);
}

template <typename... Blocks>
struct Table {
  static constexpr Entry kEntries[] = {{Blocks::kInfo, decode_all<Blocks>}...};
};

using Formats = Table<BlockF32, BlockF16, BlockBF16, BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, BlockQ4_K,
                      BlockQ5_K, BlockQ6_K>;

const Entry* find_entry(std::uint32_t type_id) {
  for (const Entry& entry : Formats::kEntries) {
    if (static_cast<std::uint32_t>(entry.info.format) == type_id) return &entry;
  }
  return nullptr;
}

const Entry& get_entry(Format format) {
  const Entry* entry = find_entry(static_cast<std::uint32_t>(format));
  if (!entry)
    fail(ErrorKind::model, "tensor type id {}: not a format this build reads", static_cast<std::uint32_t>(format));
  return *entry;
}

void require_blocks(std::string_view what, const FormatInfo& info, std::size_t bytes, std::size_t values) {
  const bool whole = values % static_cast<std::size_t>(info.block_values) == 0;
  const std::size_t needed_bytes = encoded_bytes(info.format, values);
  if (!whole || bytes != needed_bytes) {
    fail(ErrorKind::model, "{} {}: {} values need {} bytes in blocks of {} values, got {} bytes", info.name, what,
         values, needed_bytes, info.block_values, bytes);
  }
}

}  // namespace

std::optional<FormatInfo> format_info(std::uint32_t type_id) {
  const Entry* entry = find_entry(type_id);
  return entry ? std::optional(entry->info) : std::nullopt;
}

const FormatInfo& format_info(Format format) { return get_entry(format).info; }

std::size_t encoded_bytes(Format format, std::size_t values) {
  const FormatInfo& info = format_info(format);
  return values / static_cast<std::size_t>(info.block_values) * static_cast<std::size_t>(info.block_bytes);
}

void decode_blocks(Format format, std::span<const std::byte> blocks, std::span<float> out) {
  const Entry& entry = get_entry(format);
  require_blocks("decode", entry.info, blocks.size(), out.size());
  entry.decode(blocks.data(), out.size() / static_cast<std::size_t>(entry.info.block_values), out.data());
}

void encode_blocks(Format format, std::span<const float> values, std::span<std::byte> out) {
  const FormatInfo& info = format_info(format);
  require_blocks("encode", info, out.size(), values.size());
  const std::size_t count = values.size() / static_cast<std::size_t>(info.block_values);
  if (format == Format::q4_0) return encode_all<BlockQ4_0>(values.data(), count, out.data());
  if (format == Format::q8_0) return encode_all<BlockQ8_0>(values.data(), count, out.data());
  fail(ErrorKind::model, "encode: expected format Q4_0 or Q8_0, got {}", info.name);
}

}  // namespace tandem
