// The emulation computes what a device would: indices, warp primitives, barriers, atomics, shared memory.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "kernels/cuda/block.cuh"
#include "src/base/half.h"
#include "tests/kernels/gpu/device_array.h"

namespace tandem::test {
namespace {

using namespace cuda_simt;

__global__ void index_kernel(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

TEST(Simt, EveryThreadOfEveryBlockRunsOnce) {
  const auto values = in_every_order([] {
    const DeviceArray<unsigned> out(24 * 60);
    launch(index_kernel, dim3(2, 3, 4), dim3(5, 4, 3), 0, nullptr, out.data());
    return out.read();
  });
  for (unsigned i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i / 60 * 1000 + i % 60);
}

enum class Shuffle { index, up, down, bits };

template <Shuffle kKind, int kWidth>
__global__ void shuffle_kernel(int* out, int operand) {
  const int lane = static_cast<int>(threadIdx.x), value = 100 + lane;
  int got = 0;
  if constexpr (kKind == Shuffle::index) got = __shfl_sync(kWholeWarp, value, operand, kWidth);
  if constexpr (kKind == Shuffle::up) got = __shfl_up_sync(kWholeWarp, value, operand, kWidth);
  if constexpr (kKind == Shuffle::down) got = __shfl_down_sync(kWholeWarp, value, operand, kWidth);
  if constexpr (kKind == Shuffle::bits) got = __shfl_xor_sync(kWholeWarp, value, operand, kWidth);
  out[lane] = got;
}

template <Shuffle kKind, int kWidth, typename Source>
void check_shuffle(Source&& source) {
  for (int operand = 0; operand < 32; ++operand) {
    const auto got = in_every_order([&] {
      const DeviceArray<int> out(32);
      launch(shuffle_kernel<kKind, kWidth>, dim3(1), dim3(32), 0, nullptr, out.data(), operand);
      return out.read();
    });
    for (int lane = 0; lane < 32; ++lane) {
      const int first = lane / kWidth * kWidth, from = source(lane, first, operand);
      EXPECT_EQ(got[lane], 100 + (from < first || from >= first + kWidth ? lane : from)) << lane << " " << operand;
    }
  }
}

template <int kWidth>
void check_shuffles() {
  check_shuffle<Shuffle::index, kWidth>([](int, int first, int operand) { return first + operand % kWidth; });
  check_shuffle<Shuffle::up, kWidth>([](int lane, int, int operand) { return lane - operand; });
  check_shuffle<Shuffle::down, kWidth>([](int lane, int, int operand) { return lane + operand; });
}

// An earlier segment may be read by xor, a later one not.
TEST(Simt, ShufflesReadTheLaneThatCudaDefines) {
  check_shuffles<32>();
  check_shuffles<8>();
  check_shuffles<2>();
  check_shuffle<Shuffle::bits, 32>([](int lane, int, int operand) { return lane ^ operand; });
}

__global__ void wide_shuffle_kernel(double* doubles, __half* halves) {
  const int lane = static_cast<int>(threadIdx.x);
  doubles[lane] = __shfl_xor_sync(kWholeWarp, lane + 0.25, 1);
  halves[lane] = __shfl_xor_sync(kWholeWarp, __float2half(lane + 0.5f), 1);
}

TEST(Simt, ShufflesMoveDoublesAndHalves) {
  const DeviceArray<double> doubles(32);
  const DeviceArray<__half> halves(32);
  launch(wide_shuffle_kernel, dim3(1), dim3(32), 0, nullptr, doubles.data(), halves.data());
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(doubles.read()[lane], (lane ^ 1) + 0.25);
    EXPECT_EQ(__half2float(halves.read()[lane]), (lane ^ 1) + 0.5f);
  }
}

// Every vote and reduction of one warp, by halves that have done different numbers of operations before.
__global__ void votes_kernel(unsigned* out, const int* values) {
  const unsigned lane = threadIdx.x, mask = lane < 13 ? 0x1fffu : ~0x1fffu;
  const int value = values[lane];
  if (lane < 13) __syncwarp(mask);
  unsigned* mine = out + 10 * lane;
  mine[0] = __ballot_sync(mask, value > 0);
  mine[1] = static_cast<unsigned>(__any_sync(mask, value > 90));
  mine[2] = static_cast<unsigned>(__all_sync(mask, value > -90));
  mine[3] = __match_any_sync(mask, value % 4);
  mine[4] = static_cast<unsigned>(__reduce_add_sync(mask, value));
  mine[5] = static_cast<unsigned>(__reduce_min_sync(mask, value));
  mine[6] = static_cast<unsigned>(__reduce_max_sync(mask, value));
  mine[7] = __reduce_and_sync(mask, static_cast<unsigned>(value));
  mine[8] = __reduce_or_sync(mask, static_cast<unsigned>(value));
  mine[9] = __reduce_xor_sync(mask, static_cast<unsigned>(value));
}

std::array<unsigned, 10> votes_of(const std::vector<int>& values, unsigned first, unsigned end, unsigned lane) {
  std::array<unsigned, 10> want{0, 0, 1, 0, 0, 0, 0, ~0u, 0, 0};
  int least = values[first], largest = values[first];
  for (unsigned i = first; i < end; ++i) {
    const int value = values[i];
    want[0] |= unsigned{value > 0} << i;
    want[1] |= unsigned{value > 90};
    want[2] &= unsigned{value > -90};
    want[3] |= unsigned{value % 4 == values[lane] % 4} << i;
    want[4] += static_cast<unsigned>(value);
    least = std::min(least, value);
    largest = std::max(largest, value);
    want[7] &= static_cast<unsigned>(value);
    want[8] |= static_cast<unsigned>(value);
    want[9] ^= static_cast<unsigned>(value);
  }
  want[5] = static_cast<unsigned>(least);
  want[6] = static_cast<unsigned>(largest);
  return want;
}

TEST(Simt, VotesAndReductionsTakeTheLanesOfTheirMask) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<int> values(32);
    for (int& value : values) value = static_cast<int>(random() % 201) - 100;
    const DeviceArray<int> device_values(values);
    const auto got = in_every_order([&] {
      const DeviceArray<unsigned> out(320);
      launch(votes_kernel, dim3(1), dim3(32), 0, nullptr, out.data(), device_values.data());
      return out.read();
    });
    for (unsigned lane = 0; lane < 32; ++lane) {
      const auto want = lane < 13 ? votes_of(values, 0, 13, lane) : votes_of(values, 13, 32, lane);
      for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(got[10 * lane + i], want[i]) << "lane " << lane << " result " << i;
    }
  }
}

// A third of the warps, and lanes of each other, leave before the barriers.
__global__ void leaving_kernel(int* out) {
  const int thread = static_cast<int>(threadIdx.x);
  STATIC_SHARED(int, values, 96);
  values[thread] = thread;
  if (thread >= 64 || thread % 32 >= 20) return;
  __syncthreads();
  out[thread] = values[95 - thread] + static_cast<int>(__ballot_sync(kWholeWarp, 1));
}

TEST(Simt, ThreadsThatHaveEndedCountAsArrived) {
  const DeviceArray<int> out(std::vector<int>(96, -5));
  launch(leaving_kernel, dim3(1), dim3(96), 0, nullptr, out.data());
  for (int i = 0; i < 96; ++i) EXPECT_EQ(out.read()[i], i >= 64 || i % 32 >= 20 ? -5 : 95 - i + 0xfffff) << i;
}

__global__ void atomics_kernel(unsigned* totals, unsigned long long* wide) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&totals[0], thread);
  atomicMax(&totals[1], thread);
  atomicMin(&totals[2], thread);
  atomicOr(&totals[3], 1u << thread % 32);
  atomicXor(&totals[4], thread);
  atomicSub(&totals[5], 1u);
  if (atomicCAS(&totals[6], 0u, thread + 1) == 0) atomicExch(&totals[7], 1u);
  atomicAdd(wide, 1ull << 33);
}

TEST(Simt, AtomicsCountEveryThread) {
  const DeviceArray<unsigned> totals(std::vector<unsigned>{0, 0, 1000, 0, 0, 128, 0, 0});
  const DeviceArray<unsigned long long> wide(std::vector<unsigned long long>{0});
  launch(atomics_kernel, dim3(2), dim3(64), 0, nullptr, totals.data(), wide.data());
  auto got = totals.read();
  EXPECT_NE(got[6], 0u);
  got[6] = 0;
  EXPECT_EQ(got, (std::vector<unsigned>{127 * 64, 127, 0, ~0u, 0, 0, 0, 1}));
  EXPECT_EQ(wide.read()[0], 128ull << 33);
}

__global__ void fresh_kernel(float* out) {
  DYNAMIC_SHARED(float, dynamic);
  STATIC_SHARED(float, fixed, 4);
  STATIC_SHARED(float, other, 4);
  out[2 * blockIdx.x] = dynamic[1];
  out[2 * blockIdx.x + 1] = fixed[3];
  dynamic[1] = fixed[3] = 1;
  other[0] = 2;
}

TEST(Simt, SharedMemoryOfABlockStartsAsNan) {
  const DeviceArray<float> out(std::vector<float>(6, 0.f));
  launch(fresh_kernel, dim3(3), dim3(1), 16, nullptr, out.data());
  for (const float value : out.read()) EXPECT_TRUE(std::isnan(value));
}

template <typename T>
__global__ void sums_kernel(T* sums, T* maxima, const T* values, int count) {
  T sum = 0, largest = -1000;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 128) {
    sum += values[i];
    largest = max(largest, values[i]);
  }
  // Twice in a row: the second must not disturb threads that still read the first.
  const T first = block_sum<128>(sum), second = block_sum<128>(first), third = block_max<128>(largest);
  sums[threadIdx.x] = second;
  maxima[threadIdx.x] = third;
}

TEST(Simt, BlockSumsAndMaximaReachEveryThread) {
  for (const int count : {1, 31, 128, 1000}) {
    std::vector<int> values(count);
    std::mt19937 random(count);
    for (int& value : values) value = static_cast<int>(random() % 1000) - 500;
    const DeviceArray<int> device_values(values);
    const auto [sums, maxima] = in_every_order([&] {
      const DeviceArray<int> sums(128), maxima(128);
      launch(sums_kernel<int>, dim3(1), dim3(128), 0, nullptr, sums.data(), maxima.data(), device_values.data(), count);
      return std::pair(sums.read(), maxima.read());
    });
    int total = 0, largest = -1000;
    for (const int value : values) total += value, largest = std::max(largest, value);
    EXPECT_EQ(sums, std::vector<int>(128, 128 * total));
    EXPECT_EQ(maxima, std::vector<int>(128, largest));
  }
}

TEST(Simt, BlockSumsOfFloatsAreTheSameInEveryThread) {
  std::vector<float> values(777);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  const DeviceArray<float> device_values(values);
  const auto sums = in_every_order([&] {
    const DeviceArray<float> sums(128), maxima(128);
    launch(sums_kernel<float>, dim3(1), dim3(128), 0, nullptr, sums.data(), maxima.data(), device_values.data(), 777);
    return sums.read();
  });
  for (const float sum : sums) EXPECT_EQ(sum, sums[0]);
}

// The headers of the CUDA toolkit and src/base/half.h agree on every pattern and on rounding.
TEST(Simt, HalvesOfTheToolkitAreThoseOfTheProject) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float half = __half2float(std::bit_cast<__half>(pattern));
    const float brain = __bfloat162float(std::bit_cast<__nv_bfloat16>(pattern));
    ASSERT_EQ(std::isnan(half), std::isnan(half_to_float(pattern))) << bits;
    ASSERT_EQ(std::isnan(brain), std::isnan(bf16_to_float(pattern))) << bits;
    ASSERT_TRUE(std::isnan(half) || half == half_to_float(pattern)) << bits;
    ASSERT_TRUE(std::isnan(brain) || brain == bf16_to_float(pattern)) << bits;
  }
  std::mt19937 random(2);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::ldexp(static_cast<float>(random()) - 0x1p31f, static_cast<int>(random() % 60) - 60);
    ASSERT_EQ(std::bit_cast<std::uint16_t>(__float2half(value)), float_to_half(value)) << value;
    ASSERT_EQ(std::bit_cast<std::uint16_t>(__float2bfloat16(value)), float_to_bf16(value)) << value;
  }
}

TEST(Simt, IntrinsicsAreThoseOfCuda) {
  EXPECT_EQ(__brev(0x80000001u), 0x80000001u);
  EXPECT_EQ(__brev(0x00000006u), 0x60000000u);
  EXPECT_EQ(__ffs(0x50), 5);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__popcll(0xf0f0f0f0f0f0f0f0ull), 32);
  EXPECT_EQ(__byte_perm(0x33221100u, 0x77665544u, 0x7250u), 0x77225500u);
  EXPECT_EQ(__dp4a(static_cast<int>(0x80ff0102u), 0x02030405, 7), 7 + 2 * 5 + 1 * 4 + -1 * 3 + -128 * 2);
  EXPECT_EQ(__umulhi(0xffffffffu, 0xffffffffu), 0xfffffffeu);
}

}  // namespace
}  // namespace tandem::test
