// The yardsticks do the work that they count.
#include "kernels/cpu/yardstick.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "kernels/cpu/isa.h"

namespace tandem {
namespace {

class Yardstick : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << name_of(GetParam());
  }
};

TEST_P(Yardstick, ReadsEveryWord) {
  std::vector<std::uint32_t> words(64 * 37);
  std::iota(words.begin(), words.end(), 5u);
  words[777] ^= 0x80000001u;
  const std::uint32_t all = std::accumulate(words.begin(), words.end(), 0u, std::bit_xor<>());
  EXPECT_EQ(kernels_of(GetParam()).read_lines(reinterpret_cast<const std::uint8_t*>(words.data()), 4 * words.size()),
            all);
}

// Every multiply-add of ones adds one.
TEST_P(Yardstick, MultipliesAsOftenAsItSays) {
  for (const int rounds : {0, 1, 9}) {
    EXPECT_EQ(kernels_of(GetParam()).multiply_loop(rounds), rounds * cpu::kMultiplyLoopMacs);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Yardstick, ::testing::Values(Isa::portable, Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(YardstickFigures, ArePositiveAndFinite) {
  ThreadPool pool(2);
  for (const double rate : {measure_read_bandwidth(pool, 1), measure_multiply_peak(pool, 1)}) {
    EXPECT_GT(rate, 0);
    EXPECT_TRUE(std::isfinite(rate));
  }
}

}  // namespace
}  // namespace tandem
