// Launches that wait, and steps that are replayed.
#include "kernels/cuda/step_queue.h"

#include "kernels/cuda/pointwise.h"
#include "tests/kernels/gpu/device_array.h"

namespace tandem::test {
namespace {

using namespace TANDEM_GPU;

class StepQueueTest : public DeviceTest {
 protected:
  // One step on rows of 40 values: x *= factor, y += x.
  void queue_step(StepQueue& queue, const DeviceArray<float>& x, const DeviceArray<float>& y, float factor) {
    queue.add(&TANDEM_GPU::scale, Rows{x.data(), 1, 40, 40}, factor, RowCount{});
    queue.add(&TANDEM_GPU::add, Rows{y.data(), 1, 40, 40}, Rows{x.data(), 1, 40, 40}, RowCount{});
  }
};

TEST_F(StepQueueTest, NothingRunsBeforeTheFlushAndThenAllInOrder) {
  StepQueue queue(stream(), true);
  const DeviceArray<float> x(std::vector<float>(40, 3)), y(std::vector<float>(40, 1));
  queue_step(queue, x, y, 2);
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(y.read(), std::vector<float>(40, 1));
  queue.flush();
  stream().synchronize();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(y.read(), std::vector<float>(40, 7));
}

TEST_F(StepQueueTest, AStepThatComesAgainIsReplayedWithTheSameResults) {
  for (const bool graphs : {false, true}) {
    StepQueue queue(stream(), graphs);
    const DeviceArray<float> x(std::vector<float>(40, 1)), y(std::vector<float>(40, 0));
    float want = 0, value = 1;
    for (int step = 0; step < 5; ++step) {
      queue_step(queue, x, y, 2);
      queue.flush();
      stream().synchronize();
      want += value *= 2;
      EXPECT_EQ(y.read(), std::vector<float>(40, want)) << "step " << step;
    }
    EXPECT_EQ(queue.replays(), graphs ? 4u : 0u);  // the first time it runs as it is
  }
}

TEST_F(StepQueueTest, AnotherArgumentIsAnotherStep) {
  StepQueue queue(stream(), true);
  const DeviceArray<float> x(std::vector<float>(40, 1)), y(std::vector<float>(40, 0));
  float want = 0, value = 1;
  for (const float factor : {2.f, 3.f, 2.f, 3.f, 5.f, 2.f}) {
    queue_step(queue, x, y, factor);
    queue.flush();
    stream().synchronize();
    want += value *= factor;
    EXPECT_EQ(y.read(), std::vector<float>(40, want)) << "factor " << factor;
  }
  EXPECT_EQ(queue.replays(), 3u);
}

// More kinds of steps than graphs are kept: the oldest go, and come back right.
TEST_F(StepQueueTest, OldStepsAreForgotten) {
  StepQueue queue(stream(), true);
  const DeviceArray<float> x(std::vector<float>(40, 1)), y(std::vector<float>(40, 0));
  for (int round = 0; round < 3; ++round) {
    for (int kind = 0; kind < 70; ++kind) {
      for (int repeat = 0; repeat < 2; ++repeat) {
        const DeviceArray<float> fresh(std::vector<float>(40, 1));
        queue.add(&TANDEM_GPU::scale, Rows{x.data(), 1, 40, 40}, 1.f + static_cast<float>(kind), RowCount{});
        queue.add(&TANDEM_GPU::scale, Rows{x.data(), 1, 40, 40}, 0.f, RowCount{});
        queue.add(&TANDEM_GPU::add, Rows{x.data(), 1, 40, 40}, Rows{fresh.data(), 1, 40, 40}, RowCount{});
        queue.flush();
        stream().synchronize();
        ASSERT_EQ(x.read(), std::vector<float>(40, 1)) << kind;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::test
