// What passes are compared with: the host's own rates, or a device's.
#include "src/engine/row_costs.h"

#include <gtest/gtest.h>

#include "kernels/registry.h"

namespace tandem::test {
namespace {

constexpr std::size_t kBytes = 1'000'000'000;

TEST(Yardstick, OnTheHostTheSlowerOfMemoryAndMultipliesIsTheLimit) {
  const Yardstick host{std::nullopt, 20e9, 500e9};
  EXPECT_DOUBLE_EQ(*host.memory_seconds(kBytes), 0.05);
  EXPECT_DOUBLE_EQ(*host.seconds(kBytes, 1e9), 0.05);
  EXPECT_DOUBLE_EQ(*host.seconds(kBytes, 100e9), 100e9 / (kReachablePeak * 500e9));
}

TEST(Yardstick, OnADeviceThePeakOfItsMemoryIsTheLimit) {
  const Yardstick yardstick{Device{"H200", 4.8e12}, std::nullopt, std::nullopt};
  EXPECT_DOUBLE_EQ(*yardstick.memory(), 4.8e12);
  EXPECT_DOUBLE_EQ(*yardstick.seconds(kBytes, 1e15), 1e9 / 4.8e12);
}

TEST(Yardstick, ADeviceThatDoesNotTellHasNone) {
  const Yardstick yardstick{Device{"emulation", 0}, std::nullopt, std::nullopt};
  EXPECT_FALSE(yardstick.memory());
  EXPECT_FALSE(yardstick.memory_seconds(kBytes));
  EXPECT_FALSE(yardstick.seconds(kBytes, 1));
}

TEST(Yardstick, BackendsOfTheHostHaveNoDevice) {
  ThreadPool pool(1);
  for (const char* kind : {"cpu", "reference"}) EXPECT_FALSE(make_backend(kind, pool)->device()) << kind;
}

}  // namespace
}  // namespace tandem::test
