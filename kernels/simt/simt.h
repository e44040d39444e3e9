// What a kernel file sees in place of the CUDA toolchain: qualifiers, built-in variables, shared memory, barriers, warp
// primitives, atomics, intrinsics and launch(). Included by kernels/cuda/launch.h only.
#pragma once
#include <cuda_bf16.h>  // both convert and compute under a host compiler
#include <cuda_fp16.h>

#include <array>
#include <bit>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "kernels/cuda/platform.h"
#include "kernels/simt/intrinsics.h"
#include "kernels/simt/machine.h"
#include "kernels/simt/place.h"
#include "kernels/simt/stream.h"

// NOLINTBEGIN(bugprone-macro-parentheses, bugprone-reserved-identifier, readability-identifier-naming): CUDA's
// NOLINTBEGIN(bugprone-sizeof-expression): arguments of kernels may be pointers
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#undef __forceinline__
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __forceinline__ inline
// Shared memory without a red zone: kernels use STATIC_SHARED and DYNAMIC_SHARED.
#define __shared__ static_assert(false, "use STATIC_SHARED or DYNAMIC_SHARED");

#define threadIdx (::tandem::simt::here.thread_index)
#define blockIdx (::tandem::simt::here.block_index)
#define blockDim (::tandem::simt::here.block_size)
#define gridDim (::tandem::simt::here.grid_size)

#define DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::tandem::simt::machine().dynamic_shared())
// The address of the local static tells one such line, and one instance of a template, from all others.
#define STATIC_SHARED(T, name, count)   \
  static constexpr char name##_key = 0; \
  T* const name = reinterpret_cast<T*>( \
      ::tandem::simt::machine().static_shared(&name##_key, #name, sizeof(T) * std::size_t{count}))

namespace tandem::simt {

template <typename T>
T exchange(Primitive primitive, unsigned mask, T value, int operand, int width, Place where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a warp primitive moves at most 8 bytes");
  WarpCall call{primitive, mask, 0, operand, width, where};
  std::memcpy(&call.value, &value, sizeof(T));
  const std::uint64_t result = machine().wait_for_warp(call);
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &result, sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <typename T>
Argument argument_of(const T& value) {
  return {&value, sizeof(T), std::is_pointer_v<T>};
}

inline unsigned vote(Primitive primitive, unsigned mask, std::uint64_t value, Place where) {
  return static_cast<unsigned>(machine().wait_for_warp({primitive, mask, value, 0, 32, where}));
}

}  // namespace tandem::simt

using SimtPlace = tandem::simt::Place;

inline void __syncthreads(SimtPlace where = SimtPlace::of_call()) { tandem::simt::machine().wait_for_block(where); }
inline void __syncwarp(unsigned mask = 0xffffffffu, SimtPlace where = SimtPlace::of_call()) {
  tandem::simt::vote(tandem::simt::Primitive::sync, mask, 0, where);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::exchange(tandem::simt::Primitive::shuffle, mask, value, lane, width, where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::exchange(tandem::simt::Primitive::shuffle_up, mask, value, static_cast<int>(delta), width,
                                where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::exchange(tandem::simt::Primitive::shuffle_down, mask, value, static_cast<int>(delta), width,
                                where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::exchange(tandem::simt::Primitive::shuffle_xor, mask, value, bits, width, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::vote(tandem::simt::Primitive::ballot, mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate, SimtPlace where = SimtPlace::of_call()) {
  return static_cast<int>(tandem::simt::vote(tandem::simt::Primitive::any, mask, predicate != 0, where));
}
inline int __all_sync(unsigned mask, int predicate, SimtPlace where = SimtPlace::of_call()) {
  return static_cast<int>(tandem::simt::vote(tandem::simt::Primitive::all, mask, predicate != 0, where));
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, SimtPlace where = SimtPlace::of_call()) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return tandem::simt::vote(tandem::simt::Primitive::match_any, mask, bits, where);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::vote(tandem::simt::Primitive::add, mask, value, where);
}
inline int __reduce_add_sync(unsigned mask, int value, SimtPlace where = SimtPlace::of_call()) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), where));
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::vote(tandem::simt::Primitive::minimum, mask, value, where);
}
inline int __reduce_min_sync(unsigned mask, int value, SimtPlace where = SimtPlace::of_call()) {
  return static_cast<int>(
      tandem::simt::vote(tandem::simt::Primitive::minimum_signed, mask, static_cast<unsigned>(value), where));
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::vote(tandem::simt::Primitive::maximum, mask, value, where);
}
inline int __reduce_max_sync(unsigned mask, int value, SimtPlace where = SimtPlace::of_call()) {
  return static_cast<int>(
      tandem::simt::vote(tandem::simt::Primitive::maximum_signed, mask, static_cast<unsigned>(value), where));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::vote(tandem::simt::Primitive::bits_and, mask, value, where);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::vote(tandem::simt::Primitive::bits_or, mask, value, where);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, SimtPlace where = SimtPlace::of_call()) {
  return tandem::simt::vote(tandem::simt::Primitive::bits_xor, mask, value, where);
}

namespace tandem::TANDEM_GPU {

// Queues one run of the kernel. Throws simt::Fault for a launch that no device takes; what the kernel itself does wrong
// is thrown by what waits for the stream, at once for the null stream.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            Arguments... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernel arguments are copied byte by byte");
  const std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  const auto with_launch = [=](auto&& use) {
    const auto views = std::apply(
        [](const auto&... value) {
          return std::array<simt::Argument, sizeof...(Parameters)>{simt::argument_of(value)...};
        },
        values);
    const auto call = [&] { std::apply(kernel, values); };
    use(simt::Launch{reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, views,
                     [](const void* self) { (*static_cast<decltype(&call)>(self))(); }, &call});
  };
  with_launch([](const simt::Launch& shape) { simt::machine().check(shape); });
  simt::enqueue(stream, [=] { with_launch([](const simt::Launch& shape) { simt::machine().run(shape); }); });
}

}  // namespace tandem::TANDEM_GPU
// NOLINTEND(bugprone-sizeof-expression)
// NOLINTEND(bugprone-macro-parentheses, bugprone-reserved-identifier, readability-identifier-naming)
