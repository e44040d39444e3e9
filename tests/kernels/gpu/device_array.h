// What tests of device code share: arrays on the device, and one body under every schedule.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/memory.h"
#ifdef TANDEM_SIMT
#include "kernels/simt/machine.h"
#endif

namespace tandem::test {

// A vector on the device.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()), memory_(values.size() * sizeof(T)) {
    TANDEM_GPU::copy_to_device(memory_.data(), values.data(), memory_.bytes(), stream_.get());
    stream_.synchronize();
  }
  explicit DeviceArray(std::size_t size) : size_(size), memory_(size * sizeof(T)) {
    TANDEM_GPU::fill(memory_.data(), 0xff, memory_.bytes(), stream_.get());
    stream_.synchronize();
  }

  T* data() const { return memory_.template as<T>(); }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    TANDEM_GPU::copy_to_host(values.data(), memory_.data(), memory_.bytes(), stream_.get());
    stream_.synchronize();
    return values;
  }

 private:
  std::size_t size_;
  TANDEM_GPU::DeviceMemory memory_;
  TANDEM_GPU::Stream stream_;
};

// What `body` returns. The emulation runs it under each of its schedules and expects the same every time.
template <typename Body>
auto in_every_order(Body&& body) {
#ifdef TANDEM_SIMT
  decltype(body()) first{};
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::shuffled}) {
    simt::with_order(order, 11, [&] {
      auto result = body();
      if (order == simt::Order::forward)
        first = std::move(result);
      else
        EXPECT_EQ(result, first) << "under another schedule, " << static_cast<int>(order);
    });
  }
  return first;
#else
  return body();
#endif
}

// A test with a stream; skipped where this build's device code cannot run.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!TANDEM_GPU::device_present(why)) GTEST_SKIP() << why;
    stream_.emplace();
  }
  const TANDEM_GPU::Stream& stream() const { return *stream_; }

 private:
  std::optional<TANDEM_GPU::Stream> stream_;
};

}  // namespace tandem::test
