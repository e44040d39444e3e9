// Streams, pinned memory and graphs.
#include <algorithm>

#include "kernels/cuda/graph.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/step_inputs.h"
#include "src/base/error.h"
#include "tests/kernels/gpu/device_array.h"

namespace tandem::test {
namespace {

using namespace TANDEM_GPU;

using StreamTest = DeviceTest;

TEST_F(StreamTest, AnAllocationThatFailsIsNotReportedAgainByALaterCall) {
  EXPECT_THROW(DeviceMemory(std::size_t{1} << 60), Error);
  const DeviceArray<float> x(std::vector<float>(40, 2));
  EXPECT_NO_THROW(scale(Rows{x.data(), 1, 40, 40}, 3, RowCount{}, stream().get()));
  stream().synchronize();
  EXPECT_EQ(x.read(), std::vector<float>(40, 6));
}

// Also those that are more than the staging memory holds.
TEST_F(StreamTest, StagedBytesMayBeReusedAtOnce) {
  Staging staging(stream());
  for (const std::size_t bytes : {4, 1000, 200 << 10, 100 << 10, 300 << 10, 8}) {
    const DeviceMemory device(bytes);
    std::vector<std::uint8_t> values(bytes, 1), back(bytes, 0);
    staging.copy(device.data(), values.data(), bytes);
    std::ranges::fill(values, std::uint8_t{2});
    copy_to_host(back.data(), device.data(), bytes, stream().get());
    stream().synchronize();
    EXPECT_EQ(back, std::vector<std::uint8_t>(bytes, 1)) << bytes;
  }
}

TEST_F(StreamTest, RowsOfAnyPitchComeBack) {
  std::vector<int> values(5 * 7);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  const DeviceArray<int> device(values);
  std::vector<int> rows(5 * 4, -1);
  copy_rows_to_host(rows.data(), 4 * sizeof(int), device.data(), 7 * sizeof(int), 3 * sizeof(int), 5, stream().get());
  stream().synchronize();
  for (int row = 0; row < 5; ++row) {
    for (int col = 0; col < 4; ++col) EXPECT_EQ(rows[4 * row + col], col < 3 ? 7 * row + col : -1);
  }
}

TEST_F(StreamTest, AGraphReadsWhatItsMemoryHoldsAtEachReplay) {
  const PinnedMemory in(sizeof(int)), out(sizeof(int));
  const DeviceMemory first(sizeof(int)), second(sizeof(int));
  *out.as<int>() = -1;
  const Graph graph = Graph::record(stream(), [&] {
    copy_to_device(first.data(), in.data(), sizeof(int), stream().get());
    copy_within(second.data(), first.data(), sizeof(int), stream().get());
    fill(first.data(), 0, sizeof(int), stream().get());
    copy_to_host(out.data(), second.data(), sizeof(int), stream().get());
  });
  stream().synchronize();
  EXPECT_EQ(*out.as<int>(), -1) << "ran while it was recorded";
  for (const int value : {7, 1000000, -3}) {
    *in.as<int>() = value;
    graph.replay(stream());
    stream().synchronize();
    EXPECT_EQ(*out.as<int>(), value);
  }
}

TEST_F(StreamTest, ARecordingThatFailsLeavesTheStreamUsable) {
  EXPECT_THROW(Graph::record(stream(), [] { fail(ErrorKind::input, "half way"); }), Error);
  const DeviceMemory device(4);
  fill(device.data(), 0x11, 4, stream().get());
  int value = 0;
  copy_to_host(&value, device.data(), 4, stream().get());
  stream().synchronize();
  EXPECT_EQ(value, 0x11111111);
}

}  // namespace
}  // namespace tandem::test
