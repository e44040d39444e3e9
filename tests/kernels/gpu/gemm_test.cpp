// Products of a prefill chunk against sums in double.
#include "kernels/cuda/gemm.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "src/base/error.h"
#include "src/base/half.h"
#include "tests/kernels/gpu/device_array.h"

namespace tandem::test {
namespace {

using namespace TANDEM_GPU;

// Values that the element can hold, as bytes of it and as what they are worth.
struct Matrix {
  std::vector<std::byte> bytes;
  std::vector<float> values;

  Matrix(int rows, int stride, Element element, unsigned seed)
      : bytes(static_cast<std::size_t>(rows) * stride * bytes_of(element)),
        values(static_cast<std::size_t>(rows) * stride) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = normal(random);
      if (element == Element::f32) {
        std::memcpy(&bytes[4 * i], &values[i], 4);
        continue;
      }
      const std::uint16_t bits = element == Element::f16 ? float_to_half(values[i]) : float_to_bf16(values[i]);
      values[i] = element == Element::f16 ? half_to_float(bits) : bf16_to_float(bits);
      std::memcpy(&bytes[2 * i], &bits, 2);
    }
  }
};

constexpr std::array<int, 3> kShapes[] = {
    {1, 1, 8}, {5, 24, 40}, {65, 16, 256}, {16, 33, 1000}};  // rows, outputs, cols

using GemmTest = DeviceTest;

TEST_F(GemmTest, IsWithinTheRoundingOfItsSum) {
  Gemm gemm(stream().get());
  for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
    for (const auto& [rows, outputs, cols] : kShapes) {
      for (const bool add : {false, true}) {
        const int stride = cols + 8, out_stride = outputs + 4;
        const Matrix x(rows, stride, element, 1), w(outputs, stride, element, 2);
        const DeviceArray<std::byte> device_x(x.bytes), device_w(w.bytes);
        const std::vector<float> before(static_cast<std::size_t>(rows) * out_stride, 3.f);
        const DeviceArray<float> out(before);
        gemm.run({out.data(), device_x.data(), device_w.data(), rows, outputs, cols, out_stride, stride, stride,
                  element, add});
        stream().synchronize();
        const auto got = out.read();
        for (int i = 0; i < rows; ++i) {
          for (int n = 0; n < out_stride; ++n) {
            const float value = got[static_cast<std::size_t>(i) * out_stride + n];
            if (n >= outputs) {
              ASSERT_EQ(value, 3.f) << "beyond the row";
              continue;
            }
            double sum = add ? 3 : 0, magnitude = std::fabs(sum);
            for (int k = 0; k < cols; ++k) {
              const double product = double{x.values[static_cast<std::size_t>(i) * stride + k]} *
                                     w.values[static_cast<std::size_t>(n) * stride + k];
              sum += product;
              magnitude += std::fabs(product);
            }
            // At most cols roundings of partial sums that are no larger than the sum of magnitudes.
            ASSERT_NEAR(value, sum, cols * 0x1p-24 * magnitude + 1e-30) << rows << " " << outputs << " " << cols;
          }
        }
      }
    }
  }
}

#ifndef TANDEM_SIMT
// cuBLAS is opened at run time: it is found where the toolkit has it, with the functions that are called. This needs no
// device; where there is none, that is what is missing.
TEST(CublasTest, IsFoundWithItsFunctions) {
  std::string why;
  try {
    const Gemm gemm(nullptr);
  } catch (const Error& error) {
    EXPECT_FALSE(device_present(why)) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr("cudaMalloc"));
  }
}
#endif

}  // namespace
}  // namespace tandem::test
