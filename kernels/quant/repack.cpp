#include "kernels/quant/repack.h"

#include <algorithm>
#include <cstring>

#include "kernels/quant/bits.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "kernels/quant/tile.h"
#include "src/base/error.h"

namespace tandem {
namespace {

std::uint32_t read_word(const std::uint8_t* p) {
  std::uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Block type of a format.
template <Format F>
struct BlockOf;
template <>
struct BlockOf<Format::q4_0> {
  using Type = BlockQ4_0;
};
template <>
struct BlockOf<Format::q4_1> {
  using Type = BlockQ4_1;
};
template <>
struct BlockOf<Format::q5_0> {
  using Type = BlockQ5_0;
};
template <>
struct BlockOf<Format::q5_1> {
  using Type = BlockQ5_1;
};
template <>
struct BlockOf<Format::q8_0> {
  using Type = BlockQ8_0;
};
template <>
struct BlockOf<Format::q4_k> {
  using Type = BlockQ4_K;
};
template <>
struct BlockOf<Format::q5_k> {
  using Type = BlockQ5_K;
};
template <>
struct BlockOf<Format::q6_k> {
  using Type = BlockQ6_K;
};

// Unsigned codes of sub-block j of a block.
template <Format F>
void codes_of(const typename BlockOf<F>::Type& block, int j, std::uint8_t* q) {
  if constexpr (F == Format::q8_0) {
    for (int k = 0; k < 32; ++k) q[k] = static_cast<std::uint8_t>(block.quants[k]) ^ 128;
  } else if constexpr (F == Format::q6_k) {
    const int half = j / 4, quarter = j % 4;
    const std::uint8_t* low = block.quants + 64 * half + 32 * (quarter % 2);
    const std::uint8_t* top = block.top_bits + 32 * half;
    for (int k = 0; k < 32; ++k) {
      q[k] = static_cast<std::uint8_t>((low[k] >> 4 * (quarter / 2) & 15) | (top[k] >> 2 * quarter & 3) << 4);
    }
  } else if constexpr (F == Format::q4_k || F == Format::q5_k) {
    for (int k = 0; k < 32; ++k) q[k] = block.quants[32 * (j / 2) + k] >> 4 * (j % 2) & 15;
    if constexpr (F == Format::q5_k) {
      for (int k = 0; k < 32; ++k) q[k] |= static_cast<std::uint8_t>((block.fifth_bits[k] >> j & 1) << 4);
    }
  } else {
    for (int k = 0; k < 16; ++k) {
      q[k] = block.quants[k] & 15;
      q[k + 16] = block.quants[k] >> 4;
    }
    if constexpr (Layout<F>::kFiveBits) {
      const std::uint32_t fifth = read_word(block.fifth_bits);
      for (int k = 0; k < 32; ++k) q[k] |= static_cast<std::uint8_t>((fifth >> k & 1) << 4);
    }
  }
}

// Codes of one sub-block into lane `r` of the tile's vectors. `codes` was zeroed.
template <Format F>
void place_codes(std::uint8_t* codes, int r, const std::uint8_t* q) {
  for (int v = 0; v < 8; ++v) {
    const auto four = read_word(q + 4 * v);
    if constexpr (F == Format::q8_0) {
      std::memcpy(codes + 64 * v + 4 * r, &four, 4);
    } else {
      std::uint8_t* at = codes + 64 * (v % 4) + 4 * r;
      const std::uint32_t joined = read_word(at) | (four & 0x0f0f0f0fu) << 4 * (v / 4);
      std::memcpy(at, &joined, 4);
    }
    if constexpr (F == Format::q6_k) {
      std::uint8_t* at = codes + 256 + 64 * (v / 4) + 4 * r;
      const std::uint32_t joined = read_word(at) | (four >> 4 & 0x03030303u) << 2 * (v % 4);
      std::memcpy(at, &joined, 4);
    }
    if constexpr (Layout<F>::kFiveBits) {
      const std::uint32_t fifth = four >> 4 & 0x01010101u;
      const auto bits = static_cast<std::uint8_t>((fifth | fifth >> 7 | fifth >> 14 | fifth >> 21) & 15);
      codes[256 + 8 * v + r / 2] |= static_cast<std::uint8_t>(bits << 4 * (r % 2));
    }
  }
}

// Scales of sub-block j (within its group) of output r.
template <Format F>
void place_scales(std::uint8_t* group, const typename BlockOf<F>::Type& block, int j, int r) {
  using L = Layout<F>;
  std::uint8_t* side = group + L::kPair * (j / 2) + 2 * L::kCodes;
  if constexpr (F == Format::q6_k) {
    std::memcpy(side + 32 * (j % 2) + 2 * r, block.group_scales + 2 * j, 2);
    if (j == 0) std::memcpy(group + L::kGroupEnd + 2 * r, block.scale, 2);
  } else if constexpr (L::kGroupFormat) {
    const GroupScales scales = unpack_group_scales(block.group_scales);
    side[2 * r + j % 2] = scales.scale[j];
    side[32 + 2 * r + j % 2] = scales.minimum[j];
    if (j == 0) {
      std::memcpy(group + L::kGroupEnd + 2 * r, block.scale, 2);
      std::memcpy(group + L::kGroupEnd + 32 + 2 * r, block.minimum, 2);
    }
  } else {
    std::memcpy(side + 32 * (j % 2) + 2 * r, block.scale, 2);
    if constexpr (L::kMinima) std::memcpy(side + 64 + 32 * (j % 2) + 2 * r, block.minimum, 2);
  }
}

template <Format F>
void repack_blocks(const SourceMatrix& source, int index, std::uint8_t* tile) {
  using L = Layout<F>;
  using Block = typename BlockOf<F>::Type;
  constexpr int kPerBlock = Block::kInfo.block_values / kSubBlock;
  const int outputs = std::min(kTileOutputs, source.rows - kTileOutputs * index), sub_blocks = source.cols / kSubBlock;
  const std::size_t row_blocks = static_cast<std::size_t>(source.cols) / Block::kInfo.block_values;
  const Block* rows =
      reinterpret_cast<const Block*>(source.data) + kTileOutputs * static_cast<std::size_t>(index) * row_blocks;
  for (int first = 0; first < sub_blocks; first += 8, tile += L::kGroupBytes) {
    for (int r = 0; r < outputs; ++r) {
      for (int j = 0; j < 8 && first + j < sub_blocks; ++j) {
        const Block& block = rows[r * row_blocks + static_cast<std::size_t>(first + j) / kPerBlock];
        std::uint8_t q[kSubBlock];
        codes_of<F>(block, kPerBlock == 1 ? 0 : j, q);
        place_codes<F>(tile + L::kPair * (j / 2) + L::kCodes * (j % 2), r, q);
        place_scales<F>(tile, block, j, r);
      }
    }
  }
}

template <typename Element>
void repack_elements(const SourceMatrix& source, int index, std::uint8_t* tile) {
  const int outputs = std::min(kTileOutputs, source.rows - kTileOutputs * index);
  for (int r = 0; r < outputs; ++r) {
    const std::byte* row =
        source.data + (kTileOutputs * static_cast<std::size_t>(index) + r) * source.cols * sizeof(Element);
    for (int k = 0; k < source.cols; ++k) {
      std::memcpy(tile + (static_cast<std::size_t>(k) * kTileOutputs + r) * sizeof(Element), row + k * sizeof(Element),
                  sizeof(Element));
    }
  }
}

template <Format F>
std::size_t block_tile_bytes(int cols) {
  const int blocks = (cols + kSubBlock - 1) / kSubBlock;
  return static_cast<std::size_t>(blocks / 8) * Layout<F>::kGroupBytes +
         static_cast<std::size_t>((blocks % 8 + 1) / 2) * Layout<F>::kPair;
}

}  // namespace

std::size_t tile_bytes(Format format, int cols) {
  switch (format) {
    case Format::f32:
      return static_cast<std::size_t>(cols) * kTileOutputs * 4;
    case Format::f16:
    case Format::bf16:
      return static_cast<std::size_t>(cols) * kTileOutputs * 2;
    case Format::q4_0:
      return block_tile_bytes<Format::q4_0>(cols);
    case Format::q4_1:
      return block_tile_bytes<Format::q4_1>(cols);
    case Format::q5_0:
      return block_tile_bytes<Format::q5_0>(cols);
    case Format::q5_1:
      return block_tile_bytes<Format::q5_1>(cols);
    case Format::q8_0:
      return block_tile_bytes<Format::q8_0>(cols);
    case Format::q4_k:
      return block_tile_bytes<Format::q4_k>(cols);
    case Format::q5_k:
      return block_tile_bytes<Format::q5_k>(cols);
    case Format::q6_k:
      return block_tile_bytes<Format::q6_k>(cols);
  }
  fail(ErrorKind::model, "weights: expected a known format, got id {}", static_cast<std::uint32_t>(format));
}

Family family_of(Format format) {
  switch (format) {
    case Format::f32:
    case Format::f16:
    case Format::bf16:
      return Family::real;
    case Format::q4_k:
    case Format::q5_k:
    case Format::q6_k:
      return Family::group;
    default:
      return Family::block;
  }
}

void repack_tile(const SourceMatrix& source, int index, std::uint8_t* tile) {
  switch (source.format) {
    case Format::f32:
      return repack_elements<std::uint32_t>(source, index, tile);
    case Format::f16:
    case Format::bf16:
      return repack_elements<std::uint16_t>(source, index, tile);
    case Format::q4_0:
      return repack_blocks<Format::q4_0>(source, index, tile);
    case Format::q4_1:
      return repack_blocks<Format::q4_1>(source, index, tile);
    case Format::q5_0:
      return repack_blocks<Format::q5_0>(source, index, tile);
    case Format::q5_1:
      return repack_blocks<Format::q5_1>(source, index, tile);
    case Format::q8_0:
      return repack_blocks<Format::q8_0>(source, index, tile);
    case Format::q4_k:
      return repack_blocks<Format::q4_k>(source, index, tile);
    case Format::q5_k:
      return repack_blocks<Format::q5_k>(source, index, tile);
    case Format::q6_k:
      return repack_blocks<Format::q6_k>(source, index, tile);
  }
}

}  // namespace tandem
