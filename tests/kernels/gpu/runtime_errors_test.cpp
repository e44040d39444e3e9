// What calls of the CUDA runtime leave behind when they fail. For this a device is not needed.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/memory.h"
#include "src/base/error.h"

namespace tandem::test {
namespace {

// launch() asks for the last error: one that was thrown already is not to be found again.
TEST(CudaRuntimeErrors, AThrownFailureIsNotKeptForLaterLaunches) {
  EXPECT_THROW(cuda::DeviceMemory(std::size_t{1} << 60), Error);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_THROW(cuda::PinnedMemory(std::size_t{1} << 60), Error);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

// It is opened at run time: with the functions that are called, and found where the toolkit has it.
TEST(CudaRuntimeErrors, WithoutADeviceTheLibraryIsThereAllTheSame) {
  try {
    const cuda::Gemm gemm(nullptr);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("cublas")));  // but of the device that is missing
  }
}

}  // namespace
}  // namespace tandem::test
