// The count of kernels finds every way of writing one, and each has a seeded fault.
#include "tests/kernels/simt/kernel_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace tandem::test {
namespace {

TEST(KernelSources, FindsEveryKernelDefinition) {
  const auto names = kernels_defined_in(R"(
    __global__ void plain_kernel(int* out) {}
    template <int kThreads>
    __global__ void __launch_bounds__(kThreads, 2) bounded_kernel(float* out) {}
    __global__ __launch_bounds__(256) void early_kernel(float* out) {}
    // __global__ void commented_kernel() {}
    static __global__ void
        broken_line_kernel(
            int x) {}
    __device__ void helper(int x);
  )");
  EXPECT_THAT(names, testing::ElementsAre("bounded_kernel", "broken_line_kernel", "early_kernel", "plain_kernel"));
}

TEST(KernelSources, EveryKernelHasASeededFault) {
  std::ifstream file(std::string(TANDEM_SOURCE_DIR) + "/tests/kernels/simt/faults.json");
  const auto listing = nlohmann::json::parse(file);
  std::set<std::string> with_fault;
  for (const auto& fault : listing.at("faults")) with_fault.insert(fault.at("kernel"));
  for (const std::string& kernel : product_kernels()) EXPECT_TRUE(with_fault.contains(kernel)) << kernel;
}

}  // namespace
}  // namespace tandem::test
