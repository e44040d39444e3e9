// Rotation of heads, and rows into and within the cache.
//
// Threads: rope a thread for each rotated pair; store_kv a warp for 32 elements of a key and the same of its value;
// rope_store_kv some blocks of each, its keys rotated as they are read;
// move_kv a thread for each 2 bytes of a slot, which takes them along the path one after the other, so that no place is
// overwritten before it is read. A step of 8 rows stores 8 KB a layer of 2 heads of 128; each of these costs its
// launch.
#include <cmath>

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/kv.h"

namespace tandem::TANDEM_GPU {
namespace {

constexpr int kThreads = 128;

constexpr unsigned blocks_for(int threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

// A pair of elements of a head, (first, second), that one angle rotates.
struct RotatedPair {
  int first, second;

  __device__ RotatedPair(const RopeTable& table, int k)
      : first(table.style == RopeStyle::halves ? k : 2 * k),
        second(table.style == RopeStyle::halves ? k + table.dims / 2 : 2 * k + 1) {}
};

__device__ inline void rotate(float* head, const RopeTable& table, Position position, int k) {
  const RotatedPair pair(table, k);
  const std::size_t at = static_cast<std::size_t>(position) * (table.dims / 2) + k;
  const float a = head[pair.first], b = head[pair.second], cos = table.cos[at], sin = table.sin[at];
  head[pair.first] = a * cos - b * sin;
  head[pair.second] = a * sin + b * cos;
}

// Element `i` of a rotated head; the head itself stays as it is.
__device__ inline float rotated(const float* head, const RopeTable& table, Position position, int i) {
  if (i >= table.dims) return head[i];
  const int half = table.dims / 2, k = table.style == RopeStyle::halves ? i % half : i / 2;
  const RotatedPair pair(table, k);
  const std::size_t at = static_cast<std::size_t>(position) * half + k;
  const float a = head[pair.first], b = head[pair.second], cos = table.cos[at], sin = table.sin[at];
  return i == pair.first ? a * cos - b * sin : a * sin + b * cos;
}

__global__ void rope_kernel(Rows heads, int head_dim, const Position* positions, RopeTable table, RowCount count) {
  const int half = table.dims / 2, pair = static_cast<int>(blockIdx.x * kThreads + threadIdx.x),
            row = static_cast<int>(blockIdx.y);
  if (pair >= heads.cols / head_dim * half || !count.has(row)) return;
  rotate(heads.row(row) + pair / half * head_dim, table, positions[row], pair % half);
}

__device__ inline void store_q8_0(std::uint8_t* block, float value, int lane) {
  const bool finite = __all_sync(kWholeWarp, std::isfinite(value)) != 0;
  const float peak = warp_max(finite ? std::fabs(value) : 0.f);
  const std::uint16_t bits = half_of_float(finite ? peak / 127.f : NAN);
  const float scale = half_to_float(bits), code = value / scale;
  const float in_range = code > 127.f ? 127.f : code < -127.f ? -127.f : code;
  block[2 + lane] = static_cast<std::uint8_t>(static_cast<std::int8_t>(scale > 0 ? std::rint(in_range) : 0.f));
  if (lane == 0) *reinterpret_cast<std::uint16_t*>(block) = bits;
}

// A warp stores up to 32 elements of a slot, from `first` on; value(i) is element i of the head.
template <typename Value>
__device__ inline void store_elements(std::byte* slot, KvType type, int first, int head_dim, const Value& value) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), element = first + lane;
  if (type == KvType::q8_0) {
    store_q8_0(reinterpret_cast<std::uint8_t*>(slot) + first / kKvBlock * kKvBlockBytes, value(element), lane);
  } else if (element < head_dim && type == KvType::f16) {
    reinterpret_cast<std::uint16_t*>(slot)[element] = half_of_float(value(element));
  } else if (element < head_dim) {
    reinterpret_cast<float*>(slot)[element] = value(element);
  }
}

constexpr int pieces_of(const KvLayer& layer) {
  return (layer.head_dim + kWarpLanes - 1) / kWarpLanes * layer.kv_heads;
}

// A warp stores its piece, up to 32 elements of one head, of a row's key and value; key_element(head, i) is element i
// of the key as it is to be stored.
template <typename KeyElement>
__device__ inline void store_piece(const KvLayer& layer, int place, const float* keys, const float* values, int block,
                                   const KeyElement& key_element) {
  const int index = block * (kThreads / kWarpLanes) + static_cast<int>(threadIdx.x / kWarpLanes);
  if (index >= pieces_of(layer)) return;
  const int pieces = pieces_of(layer) / layer.kv_heads, head = index / pieces, first = index % pieces * kWarpLanes;
  const std::size_t at = layer.offset(head, place);
  const float* const key = keys + head * layer.head_dim;
  const float* const value = values + head * layer.head_dim;
  store_elements(layer.keys + at, layer.type, first, layer.head_dim, [&](int i) { return key_element(key, i); });
  store_elements(layer.values + at, layer.type, first, layer.head_dim, [&](int i) { return value[i]; });
}

__global__ void store_kv_kernel(KvLayer layer, const int* base, Rows keys, Rows values, RowCount count) {
  const int row = static_cast<int>(blockIdx.y);
  if (!count.has(row)) return;
  store_piece(layer, *base + row, keys.row(row), values.row(row), static_cast<int>(blockIdx.x),
              [](const float* key, int i) { return key[i]; });
}

// The first blocks rotate queries, those behind store keys and values.
__global__ void rope_store_kv_kernel(Rows queries, Rows keys, Rows values, const Position* positions, RopeTable table,
                                     KvLayer layer, const int* base, RowCount count) {
  const int half = table.dims / 2, row = static_cast<int>(blockIdx.y), pairs = queries.cols / layer.head_dim * half,
            query_blocks = static_cast<int>(blocks_for(pairs)), block = static_cast<int>(blockIdx.x);
  if (!count.has(row)) return;
  const Position position = positions[row];
  if (block >= query_blocks) {
    return store_piece(layer, *base + row, keys.row(row), values.row(row), block - query_blocks,
                       [&](const float* key, int i) { return rotated(key, table, position, i); });
  }
  const int pair = block * kThreads + static_cast<int>(threadIdx.x);
  if (pair < pairs) rotate(queries.row(row) + pair / half * layer.head_dim, table, position, pair % half);
}

__global__ void move_kv_kernel(KvLayer layer, const int* base, const int* path, const int* length) {
  const int unit = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), head = static_cast<int>(blockIdx.y);
  if (unit >= static_cast<int>(layer.slot_bytes() / 2)) return;
  std::byte* const part = blockIdx.z == 0 ? layer.keys : layer.values;
  const auto word = [&](int place) {
    return reinterpret_cast<std::uint16_t*>(part + layer.offset(head, place)) + unit;
  };
  const int count = *length;
  for (int i = 0; i < count; ++i) {
    if (path[i] != i) *word(*base + i) = *word(*base + path[i]);
  }
}

}  // namespace

void rope(Rows heads, int head_dim, const Position* positions, const RopeTable& table, RowCount count,
          cudaStream_t stream) {
  const int pairs = heads.cols / head_dim * (table.dims / 2);
  if (heads.rows == 0 || pairs == 0) return;
  launch(rope_kernel, dim3(blocks_for(pairs), heads.rows), dim3(kThreads), 0, stream, heads, head_dim, positions, table,
         count);
}

void store_kv(const KvLayer& layer, const int* base, Rows keys, Rows values, RowCount count, cudaStream_t stream) {
  if (keys.rows == 0) return;
  const int warps = pieces_of(layer);
  launch(store_kv_kernel, dim3(blocks_for(warps * kWarpLanes), keys.rows), dim3(kThreads), 0, stream, layer, base, keys,
         values, count);
}

void rope_store_kv(Rows queries, Rows keys, Rows values, const Position* positions, const RopeTable& table,
                   const KvLayer& layer, const int* base, RowCount count, cudaStream_t stream) {
  if (queries.rows == 0) return;
  const int pairs = queries.cols / layer.head_dim * (table.dims / 2), warps = pieces_of(layer);
  launch(rope_store_kv_kernel, dim3(blocks_for(pairs) + blocks_for(warps * kWarpLanes), queries.rows), dim3(kThreads),
         0, stream, queries, keys, values, positions, table, layer, base, count);
}

void move_kv(const KvLayer& layer, const int* base, const int* path, const int* length, cudaStream_t stream) {
  const int units = static_cast<int>(layer.slot_bytes() / 2);
  launch(move_kv_kernel, dim3(blocks_for(units), layer.kv_heads, 2), dim3(kThreads), 0, stream, layer, base, path,
         length);
}

}  // namespace tandem::TANDEM_GPU
