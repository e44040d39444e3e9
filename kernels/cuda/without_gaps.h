// Arguments of launches that compare equal byte by byte when their members do: what lies between members is whatever
// the memory held before, so a copy leaves zeros there.
#pragma once
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/backend.h"
#include "kernels/cuda/expand.h"
#include "kernels/cuda/kv.h"
#include "kernels/cuda/matmul.h"

namespace tandem::TANDEM_GPU {

// T or const T.
template <typename T, typename Other>
concept Either = std::is_same_v<std::remove_const_t<T>, Other>;

// The members of every type with gaps that a launch takes, or that lies in one.
constexpr auto members(Either<KvLayer> auto& c) {
  return std::tie(c.keys, c.values, c.type, c.kv_heads, c.capacity, c.head_dim, c.ring);
}
constexpr auto members(Either<RopeTable> auto& c) { return std::tie(c.cos, c.sin, c.dims, c.style); }
constexpr auto members(Either<AttentionParams> auto& c) { return std::tie(c.scale, c.window, c.soft_cap); }
constexpr auto members(Either<TiledMatrix> auto& c) {
  return std::tie(c.format, c.rows, c.cols, c.tiles, c.tile_bytes);
}
constexpr auto members(Either<MatmulPart> auto& c) { return std::tie(c.tiles, c.bias, c.out, c.out_stride, c.outputs); }
constexpr auto members(Either<MatmulCall> auto& c) {
  return std::tie(c.format, c.parts, c.part_count, c.gate, c.rows, c.cols, c.count, c.tile_bytes, c.acts, c.x,
                  c.x_stride);
}
constexpr auto members(Either<AttentionCall> auto& c) {
  return std::tie(c.out, c.queries, c.layer, c.params, c.count, c.base, c.ancestors, c.first_split, c.splits,
                  c.partial);
}

// to = from, for `to` in memory of zeros: member by member where there are gaps.
template <typename T>
void assign_without_gaps(T& to, const T& from) {
  if constexpr (std::is_array_v<T>) {
    for (std::size_t i = 0; i < std::extent_v<T>; ++i) assign_without_gaps(to[i], from[i]);
  } else if constexpr (requires { members(to); }) {
    const auto targets = members(to);
    const auto sources = members(from);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (assign_without_gaps(std::get<I>(targets), std::get<I>(sources)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(sources)>>());
  } else {
    static_assert(std::is_scalar_v<T> || std::has_unique_object_representations_v<T>, "name its members above");
    to = from;
  }
}

// `value` with zeros in its gaps.
template <typename T>
void clear_gaps(T& value) {
  const T copy = value;
  std::memset(static_cast<void*>(&value), 0, sizeof value);
  assign_without_gaps(value, copy);
}

}  // namespace tandem::TANDEM_GPU
