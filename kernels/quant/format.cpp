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

}  // namespace

std::optional<FormatInfo> format_info(std::uint32_t type_id) {
  const Entry* entry = find_entry(type_id);
  return entry ? std::optional(entry->info) : std::nullopt;
}

const FormatInfo& format_info(Format format) { return get_entry(format).info; }

void decode_blocks(Format format, std::span<const std::byte> blocks, std::span<float> out) {
  const Entry& entry = get_entry(format);
  const std::size_t count = out.size() / static_cast<std::size_t>(entry.info.block_values);
  const std::size_t needed_bytes = count * static_cast<std::size_t>(entry.info.block_bytes);
  if (out.size() % static_cast<std::size_t>(entry.info.block_values) != 0 || blocks.size() != needed_bytes) {
    fail(ErrorKind::model, "{} decode: {} values need {} bytes in blocks of {} values, got {} bytes", entry.info.name,
         out.size(), needed_bytes, entry.info.block_values, blocks.size());
  }
  entry.decode(blocks.data(), count, out.data());
}

}  // namespace tandem
