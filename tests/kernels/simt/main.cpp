// Runs the whole suite of the emulation in one process and, unless it was filtered, fails when a kernel of the product
// was never launched.
#include <gtest/gtest.h>

#include "tests/kernels/simt/kernel_sources.h"

namespace tandem::test {
namespace {

class EveryKernelRuns : public testing::Environment {
 public:
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*") return;
    for (const std::string& kernel : kernels_never_launched()) ADD_FAILURE() << "never launched: " << kernel;
  }
};

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new tandem::test::EveryKernelRuns);
  return RUN_ALL_TESTS();
}
