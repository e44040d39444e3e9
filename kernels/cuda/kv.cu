// Rotation of heads, and rows into and within the cache.
//
// Threads: rope a thread for each rotated pair; store_kv a warp for 32 elements of a key and the same of its value;
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

__global__ void rope_kernel(Rows heads, int head_dim, const Position* positions, RopeTable table) {
  const int half = table.dims / 2, pair = static_cast<int>(blockIdx.x * kThreads + threadIdx.x),
            row = static_cast<int>(blockIdx.y);
  if (pair >= heads.cols / head_dim * half) return;
  const int k = pair % half;
  const bool halves = table.style == RopeStyle::halves;
  float* const head = heads.row(row) + pair / half * head_dim;
  float* const first = head + (halves ? k : 2 * k);
  float* const second = first + (halves ? half : 1);
  const std::size_t at = static_cast<std::size_t>(positions[row]) * half + k;
  const float a = *first, b = *second, cos = table.cos[at], sin = table.sin[at];
  *first = a * cos - b * sin;
  *second = a * sin + b * cos;
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

// A warp; `first`: of its up to 32 elements.
__device__ inline void store_elements(std::byte* slot, const float* from, KvType type, int first, int head_dim) {
  const int lane = static_cast<int>(threadIdx.x % kWarpLanes), element = first + lane;
  if (type == KvType::q8_0) {
    store_q8_0(reinterpret_cast<std::uint8_t*>(slot) + first / kKvBlock * kKvBlockBytes, from[element], lane);
  } else if (element < head_dim && type == KvType::f16) {
    reinterpret_cast<std::uint16_t*>(slot)[element] = half_of_float(from[element]);
  } else if (element < head_dim) {
    reinterpret_cast<float*>(slot)[element] = from[element];
  }
}

__global__ void store_kv_kernel(KvLayer layer, const int* base, Rows keys, Rows values) {
  const int pieces = (layer.head_dim + kWarpLanes - 1) / kWarpLanes,
            piece = static_cast<int>(blockIdx.x * (kThreads / kWarpLanes) + threadIdx.x / kWarpLanes),
            row = static_cast<int>(blockIdx.y);
  if (piece >= pieces * layer.kv_heads) return;
  const int head = piece / pieces, first = piece % pieces * kWarpLanes;
  const std::size_t at = layer.offset(head, *base + row);
  store_elements(layer.keys + at, keys.row(row) + head * layer.head_dim, layer.type, first, layer.head_dim);
  store_elements(layer.values + at, values.row(row) + head * layer.head_dim, layer.type, first, layer.head_dim);
}

__global__ void move_kv_kernel(KvLayer layer, const int* base, const int* path, int count) {
  const int unit = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), head = static_cast<int>(blockIdx.y);
  if (unit >= static_cast<int>(layer.slot_bytes() / 2)) return;
  std::byte* const part = blockIdx.z == 0 ? layer.keys : layer.values;
  const auto word = [&](int place) {
    return reinterpret_cast<std::uint16_t*>(part + layer.offset(head, place)) + unit;
  };
  for (int i = 0; i < count; ++i) {
    if (path[i] != i) *word(*base + i) = *word(*base + path[i]);
  }
}

constexpr unsigned blocks_for(int threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

}  // namespace

void rope(Rows heads, int head_dim, const Position* positions, const RopeTable& table, cudaStream_t stream) {
  const int pairs = heads.cols / head_dim * (table.dims / 2);
  if (heads.rows == 0 || pairs == 0) return;
  launch(rope_kernel, dim3(blocks_for(pairs), heads.rows), dim3(kThreads), 0, stream, heads, head_dim, positions,
         table);
}

void store_kv(const KvLayer& layer, const int* base, Rows keys, Rows values, cudaStream_t stream) {
  if (keys.rows == 0) return;
  const int warps = (layer.head_dim + kWarpLanes - 1) / kWarpLanes * layer.kv_heads;
  launch(store_kv_kernel, dim3(blocks_for(warps * kWarpLanes), keys.rows), dim3(kThreads), 0, stream, layer, base, keys,
         values);
}

void move_kv(const KvLayer& layer, const int* base, const int* path, int count, cudaStream_t stream) {
  const int units = static_cast<int>(layer.slot_bytes() / 2);
  launch(move_kv_kernel, dim3(blocks_for(units), layer.kv_heads, 2), dim3(kThreads), 0, stream, layer, base, path,
         count);
}

}  // namespace tandem::TANDEM_GPU
