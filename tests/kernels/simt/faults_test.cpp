// What the emulation reports of kernels that are wrong, and that it goes on working afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/graph.h"
#include "kernels/simt/launches.h"
#include "kernels/simt/sanitizer.h"
#include "src/base/error.h"
#include "tests/kernels/gpu/device_array.h"

namespace tandem::test {
namespace {

using namespace cuda_simt;
using simt::Fault;
using simt::FaultKind;
using simt::Order;
using testing::AllOf;
using testing::HasSubstr;

// The fault that `run` must end in, under every schedule.
template <typename Run>
void expect_fault(FaultKind kind, const testing::Matcher<std::string>& message, Run&& run) {
  for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
    try {
      simt::with_order(order, 3, run);
      ADD_FAILURE() << "no fault was found";
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.kind(), kind) << fault.what();
      EXPECT_THAT(fault.what(), message);
    }
  }
}

__global__ void divergent_kernel(int* out) {
  if (blockIdx.x == 2 && threadIdx.x < 7)
    __syncthreads();
  else
    __syncwarp();
  out[0] = 1;
}

TEST(SimtFaults, ABarrierThatNotAllReachIsReportedWithItsPlace) {
  const DeviceArray<int> out(1);
  expect_fault(FaultKind::divergence,
               AllOf(HasSubstr("divergent_kernel: block (2, 0, 0)"), HasSubstr("barrier divergence"),
                     HasSubstr("threads 0..6 wait in __syncthreads at faults_test.cpp:"),
                     HasSubstr("threads 7..31 wait in __syncwarp of mask 0xffffffff at faults_test.cpp:")),
               [&] { launch(divergent_kernel, dim3(3), dim3(32), 0, nullptr, out.data()); });
}

__global__ void two_barriers_kernel() {
  // NOLINTNEXTLINE(bugprone-branch-clone): the fault is that they are two
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}

TEST(SimtFaults, WarpsAtDifferentBarriersAreReported) {
  expect_fault(FaultKind::divergence, HasSubstr("barrier divergence"),
               [] { launch(two_barriers_kernel, dim3(1), dim3(64), 0, nullptr); });
}

__global__ void masks_kernel() {
  if (threadIdx.x < 16)
    __syncwarp(0xffffffffu);
  else
    __syncwarp(0xfffffff0u);
}

TEST(SimtFaults, LanesThatNameDifferentMasksAreReported) {
  expect_fault(FaultKind::mask,
               AllOf(HasSubstr("masks_kernel"), HasSubstr("threads 0..15 wait in __syncwarp of mask 0xffffffff"),
                     HasSubstr("threads 16..31 wait in __syncwarp of mask 0xfffffff0")),
               [] { launch(masks_kernel, dim3(1), dim3(32), 0, nullptr); });
}

__global__ void foreign_mask_kernel() { __any_sync(0x0000ffffu, 1); }

TEST(SimtFaults, AMaskWithoutItsCallerIsReported) {
  expect_fault(FaultKind::mask,
               AllOf(HasSubstr("foreign_mask_kernel: block (0, 0, 0), thread ("), HasSubstr("leaves out the lane")),
               [] { launch(foreign_mask_kernel, dim3(1), dim3(32), 0, nullptr); });
}

__global__ void absent_lane_kernel(int* out) {
  if (threadIdx.x < 8) out[threadIdx.x] = __shfl_down_sync(0xffu, static_cast<int>(threadIdx.x), 4);
}

TEST(SimtFaults, ReadingALaneThatTakesNoPartIsReported) {
  const DeviceArray<int> out(8);
  expect_fault(FaultKind::mask, AllOf(HasSubstr("absent_lane_kernel"), HasSubstr("lane 4 reads lane 8")),
               [&] { launch(absent_lane_kernel, dim3(1), dim3(32), 0, nullptr, out.data()); });
}

// Faults of memory: under AddressSanitizer the access itself ends the program.
template <typename Run>
void expect_overrun(const testing::Matcher<std::string>& message, Run&& run) {
  if constexpr (simt::kAddressSanitizer) {
    EXPECT_DEATH(run(), HasSubstr("use-after-poison"));
  } else {
    expect_fault(FaultKind::out_of_bounds, message, run);
  }
}

__global__ void static_overrun_kernel() {
  STATIC_SHARED(float, tile, 40);
  tile[threadIdx.x + (threadIdx.x == 33 ? 8 : 0)] = 1;
}

TEST(SimtFaults, AWriteBeyondStaticSharedMemoryNamesItsThread) {
  expect_overrun(AllOf(HasSubstr("static_overrun_kernel: block (0, 0, 0), thread (33, 0, 0)"),
                       HasSubstr("a write to byte 164"), HasSubstr("tile (160 bytes)")),
                 [] { launch(static_overrun_kernel, dim3(1), dim3(40), 0, nullptr); });
}

__global__ void dynamic_overrun_kernel(int place) {
  DYNAMIC_SHARED(std::uint8_t, scratch);
  if (threadIdx.x == 5) scratch[place] = 1;
}

TEST(SimtFaults, AWriteBesideDynamicSharedMemoryNamesItsThread) {
  expect_overrun(AllOf(HasSubstr("thread (5, 0, 0)"), HasSubstr("a write to byte 33 of dynamic shared memory")),
                 [] { launch(dynamic_overrun_kernel, dim3(1), dim3(8), 33, nullptr, 33); });
  expect_overrun(AllOf(HasSubstr("thread (5, 0, 0)"), HasSubstr("a write 2 bytes in front of dynamic shared memory")),
                 [] { launch(dynamic_overrun_kernel, dim3(1), dim3(8), 33, nullptr, -2); });
}

struct Arguments {
  int place;
  float* data;
};

__global__ void device_overrun_kernel(Arguments arguments) {
  if (blockIdx.x == 1 && threadIdx.x == 3) arguments.data[arguments.place] = 0;
}

TEST(SimtFaults, AWriteBesideDeviceMemoryNamesItsThread) {
  const DeviceArray<float> data(10);
  expect_overrun(AllOf(HasSubstr("device_overrun_kernel: block (1, 0, 0), thread (3, 0, 0)"),
                       HasSubstr("a write to byte 40 of a device allocation of 40 bytes")),
                 [&] {
                   launch(device_overrun_kernel, dim3(2), dim3(4), 0, nullptr, Arguments{10, data.data()});
                 });
  expect_overrun(HasSubstr("a write 4 bytes in front of a device allocation"), [&] {
    launch(device_overrun_kernel, dim3(2), dim3(4), 0, nullptr, Arguments{-1, data.data()});
  });
}

TEST(SimtFaults, HostMemoryIsNotTakenForDeviceMemory) {
  float host = 0;
  expect_fault(FaultKind::launch, AllOf(HasSubstr("argument 2 points to host memory")), [&] {
    launch(
        +[](int, float*) {}, dim3(1), dim3(1), 0, nullptr, 1, &host);
  });
}

__global__ void idle_kernel() {}
__global__ void large_static_kernel() {
  STATIC_SHARED(float, tile, 12289);
  tile[0] = 0;
}

TEST(SimtFaults, LaunchesThatNoDeviceTakesAreRefused) {
  const auto refused = [](dim3 grid, dim3 block, std::size_t shared_bytes) {
    expect_fault(FaultKind::launch, HasSubstr("idle_kernel"),
                 [&] { launch(idle_kernel, grid, block, shared_bytes, nullptr); });
  };
  refused(dim3(1), dim3(1025), 0);
  refused(dim3(1), dim3(1, 1, 65), 0);
  refused(dim3(1), dim3(0), 0);
  refused(dim3(0), dim3(32), 0);
  refused(dim3(1, 65536), dim3(32), 0);
  refused(dim3(1), dim3(32), (163 << 10) + 1);
  expect_fault(FaultKind::launch, HasSubstr("tile brings static shared memory to 49156 bytes"),
               [] { launch(large_static_kernel, dim3(1), dim3(1), 0, nullptr); });
}

struct Counted {
  explicit Counted(int* count) : count(count) { ++*count; }
  ~Counted() { --*count; }
  int* count;
};

__global__ void throwing_kernel(int* alive) {
  const Counted counted(alive);
  __syncthreads();
  if (threadIdx.x == 40) throw std::runtime_error("thread 40");
  __syncthreads();
}

TEST(SimtFaults, AnExceptionUnwindsEveryThreadOfTheBlock) {
  const DeviceArray<int> alive(std::vector<int>{0});
  expect_fault(FaultKind::other, AllOf(HasSubstr("throwing_kernel"), HasSubstr("thread (40, 0, 0)")),
               [&] { launch(throwing_kernel, dim3(1), dim3(64), 0, nullptr, alive.data()); });
  EXPECT_EQ(alive.read()[0], 0);
  launch(idle_kernel, dim3(4), dim3(64), 0, nullptr);  // and the emulation is as good as new
}

// The classic faults that no report names: they show because the schedules disagree.
template <bool kBarrier>
__global__ void reversed_kernel(int* out, const int* in) {
  STATIC_SHARED(int, values, 64);
  values[threadIdx.x] = in[threadIdx.x];
  if constexpr (kBarrier)
    __syncthreads();
  else
    __syncwarp();
  out[threadIdx.x] = values[63 - threadIdx.x];
}

template <typename Kernel>
std::vector<std::vector<int>> results_by_order(Kernel kernel) {
  std::vector<int> in(64);
  std::iota(in.begin(), in.end(), 0);
  const DeviceArray<int> device_in(in);
  std::vector<std::vector<int>> results;
  for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
    simt::with_order(order, 1, [&] {
      const DeviceArray<int> out(64);
      launch(kernel, dim3(1), dim3(64), 0, nullptr, out.data(), device_in.data());
      results.push_back(out.read());
    });
  }
  return results;
}

TEST(SimtFaults, AMissingBarrierMakesTheSchedulesDisagree) {
  const auto sound = results_by_order(reversed_kernel<true>), racy = results_by_order(reversed_kernel<false>);
  EXPECT_EQ(sound[0], sound[1]);
  EXPECT_EQ(sound[0], sound[2]);
  EXPECT_NE(racy[0], racy[1]);
}

TEST(SimtFaults, KernelsAreKnownByTheirNames) {
  launch(idle_kernel, dim3(1), dim3(1), 0, nullptr);
  const auto* idle = reinterpret_cast<const void*>(&idle_kernel);
  EXPECT_TRUE(simt::launched_kernels().contains(idle));
  EXPECT_EQ(simt::function_name(idle), "tandem::test::(anonymous namespace)::idle_kernel");
  EXPECT_EQ(simt::function_name(reinterpret_cast<const void*>(&reversed_kernel<true>)),
            "tandem::test::(anonymous namespace)::reversed_kernel<true>");
  EXPECT_EQ(simt::without_signature("void a::(anonymous namespace)::f<(a::E)2, g<int (*)(int)> >(float*, int)"),
            "a::(anonymous namespace)::f<(a::E)2, g<int (*)(int)> >");
}

TEST(SimtMemory, AnAllocationBeyondTheDeviceNamesBytesNeededAndFree) {
  const std::size_t before =
      simt::heap().set_total_bytes(simt::heap().total_bytes() - simt::heap().free_bytes() + 1000);
  try {
    const DeviceMemory memory(1001);
    ADD_FAILURE() << "was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("1001 bytes needed"), HasSubstr("1000 of")));
  }
  EXPECT_EQ(device_bytes().free, 1000u);
  const DeviceMemory fits(1000);
  EXPECT_EQ(device_bytes().free, 0u);
  simt::heap().set_total_bytes(before);
}

TEST(SimtMemory, CopiesStayWithinOneAllocation) {
  const DeviceMemory a(16), b(16);
  std::byte host[32]{};
  EXPECT_THROW(copy_to_device(a.data(), host, 17, nullptr), Error);
  EXPECT_THROW(copy_to_host(host, a.data() + 8, 9, nullptr), Error);
  EXPECT_THROW(copy_within(a.data(), b.data() + 1, 16, nullptr), Error);
  EXPECT_THROW(copy_within(host, b.data(), 16, nullptr), Error);
  EXPECT_THROW(copy_rows_to_host(host, 8, a.data(), 4, 8, 2, nullptr), Error);
  EXPECT_THROW(copy_rows_to_host(host, 4, a.data(), 8, 8, 2, nullptr), Error);
  EXPECT_THROW(fill(a.data(), 0, 17, nullptr), Error);
  copy_to_device(a.data(), host, 16, nullptr);
}

TEST(SimtStream, WorkIsDoneWhenSomethingWaitsForIt) {
  const DeviceMemory memory(4);
  const Stream stream;
  fill(memory.data(), 0, 4, stream.get());
  int value = -1;
  copy_to_host(&value, memory.data(), 4, stream.get());
  EXPECT_EQ(value, -1);
  stream.synchronize();
  EXPECT_EQ(value, 0);
}

TEST(SimtStream, HostMemoryIsReadWhenTheCopyIsDone) {
  const DeviceMemory memory(4);
  const PinnedMemory pinned(4);
  const Stream stream;
  int pageable = 0, value = 0;
  for (int* from : {pinned.as<int>(), &pageable}) {
    *from = 1;
    copy_to_device(memory.data(), from, 4, stream.get());
    *from = 2;
    copy_to_host(&value, memory.data(), 4, stream.get());
    stream.synchronize();
    EXPECT_EQ(value, 2);
  }
}

TEST(SimtStream, AFaultOfAKernelIsThrownByWhatWaitsForIt) {
  const DeviceArray<int> out(1);
  const Stream stream;
  launch(divergent_kernel, dim3(3), dim3(32), 0, stream.get(), out.data());
  EXPECT_THROW(stream.synchronize(), Fault);
  EXPECT_NO_THROW(stream.synchronize());
  launch(divergent_kernel, dim3(3), dim3(32), 0, stream.get(), out.data());
  { const DeviceMemory freed(4); }  // waits too, and cannot throw
  EXPECT_THROW(stream.synchronize(), Fault);
}

TEST(SimtStream, ARecordingTakesNeitherPageableCopiesNorAllocationsNorWaits) {
  const DeviceMemory memory(4);
  const Stream stream;
  int value = 0;
  EXPECT_THROW(Graph::record(stream, [&] { copy_to_device(memory.data(), &value, 4, stream.get()); }), Error);
  EXPECT_THROW(Graph::record(stream, [&] { copy_to_host(&value, memory.data(), 4, stream.get()); }), Error);
  EXPECT_THROW(Graph::record(stream, [] { const DeviceMemory more(4); }), Error);
  EXPECT_THROW(Graph::record(stream, [&] { stream.synchronize(); }), Error);
}

}  // namespace
}  // namespace tandem::test
