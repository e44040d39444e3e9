// What the CUDA backend promises besides its arithmetic.
#include "kernels/cuda/cuda_backend.h"

#include <gmock/gmock.h>

#include <cmath>

#include "kernels/cuda/platform.h"
#include "tests/kernels/gpu/device_array.h"
#include "tests/kernels/kernel_fixture.h"
#ifdef TANDEM_SIMT
#include "kernels/simt/heap.h"
#endif

namespace tandem::test {
namespace {

class CudaBackendTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) backend_ = TANDEM_GPU::make_cuda_backend(pool_);
  }
  template <typename Call>
  static std::string message_of(ErrorKind kind, const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "expected an error";
    return "";
  }

  ThreadPool pool_{2};
  std::unique_ptr<Backend> backend_;
};

TEST_F(CudaBackendTest, MemoryKeepsWhatIsWrittenAndStartsAsZeros) {
  const auto buffer = backend_->allocate(1000);
  std::vector<std::byte> got(1000, std::byte{1}), values(300);
  backend_->read(got, buffer->data());
  EXPECT_EQ(got, std::vector<std::byte>(1000));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i);
  backend_->write(buffer->data() + 256, values);
  backend_->read(std::span(got).first(300), buffer->data() + 256);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), got.begin()));
}

TEST_F(CudaBackendTest, DownloadsRowsThatLieApart) {
  std::vector<float> values(4 * 10);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto buffer = backend_->allocate(values.size() * sizeof(float));
  backend_->write(buffer->data(), std::as_bytes(std::span(values)));
  const Rows all{reinterpret_cast<float*>(buffer->data()), 4, 10, 10};
  const auto part = backend_->download(all.columns(2, 3));
  ASSERT_EQ(part.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(part[i], values[i / 3 * 10 + 2 + i % 3]);
}

TEST_F(CudaBackendTest, AModelThatDoesNotFitIsRefusedWithTheBytesNeededAndFree) {
  const std::size_t huge = std::size_t{1} << 50;
  const std::string message =
      message_of(ErrorKind::device, [&] { backend_->require_room(huge, "the weights of big.gguf"); });
  EXPECT_THAT(message, testing::HasSubstr("the weights of big.gguf needs 1125899906842624 bytes"));
  EXPECT_THAT(message, testing::HasSubstr("are free"));
  EXPECT_NO_THROW(backend_->require_room(1 << 20, "a small model"));
}

#ifdef TANDEM_SIMT
TEST_F(CudaBackendTest, MemoryThatRunsOutIsAnErrorThatNamesBoth) {
  const std::size_t before = simt::heap().set_total_bytes(4 << 20);
  const std::string message = message_of(ErrorKind::device, [&] { backend_->allocate(5 << 20); });
  simt::heap().set_total_bytes(before);
  EXPECT_THAT(message, testing::HasSubstr("5242880 bytes needed"));
}
#endif

TEST_F(CudaBackendTest, RefusesWhatItCannotRun) {
  const std::vector<std::byte> data(144);
  EXPECT_THROW(load(*backend_, Format::q4_k, 1, 128, data), Error);
  EXPECT_THROW(load(*backend_, Format::q4_k, 2, 256, data), Error);
  const auto weight = load(*backend_, Format::q4_k, 1, 256, data);
  const auto cpu = make_cpu_backend(Isa::portable, pool_);
  const auto foreign = load(*cpu, Format::q4_k, 1, 256, data);
  const auto vector = load_vector(*backend_, std::vector<float>(256));
  const auto memory = backend_->allocate(8192);
  float* const floats = reinterpret_cast<float*>(memory->data());
  const Rows x{floats, 1, 256, 256}, out{floats + 512, 1, 1, 1};
  for (const Weight* wrong : {foreign.get(), vector.get()}) {
    EXPECT_THROW(backend_->matmul(std::array{Projection{out, wrong, nullptr}}, x), Error);
  }
  EXPECT_THROW(backend_->matmul(std::array{Projection{out, weight.get(), vector.get()}}, x), Error);
  EXPECT_THROW(backend_->rms_norm(x, x, *weight, 1e-6f), Error);
  EXPECT_THROW(backend_->embed(x, *weight, std::vector<TokenId>{1}), Error);
  const KvLayer odd{memory->data(), memory->data() + 4096, KvType::f16, 1, 4, 30, false};
  EXPECT_THAT(message_of(ErrorKind::model,
                         [&] {
                           const Rows heads{floats, 1, 30, 30};
                           backend_->attention(heads, heads, odd, 0, {.scale = 1}, {});
                         }),
              testing::HasSubstr("multiple of 4 elements up to 256, got 30"));
}

// A step's ids, positions and places come from lists on the device: a change of any must arrive.
TEST_F(CudaBackendTest, LaterOpsSeeTheirOwnListsNotEarlierOnes) {
  std::vector<std::byte> data(40 * 32 * sizeof(float));
  for (int i = 0; i < 40 * 32; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(data.data() + 4 * i, &value, 4);
  }
  const auto table = load(*backend_, Format::f32, 40, 32, data, WeightUse::lookup);
  const auto memory = backend_->allocate(8 * 32 * sizeof(float));
  for (const std::vector<TokenId>& tokens :
       {std::vector<TokenId>{3, 17, 39}, std::vector<TokenId>{3, 18}, std::vector<TokenId>{3, 18, 39, 0, 1, 2, 4, 5}}) {
    const Rows out{reinterpret_cast<float*>(memory->data()), static_cast<int>(tokens.size()), 32, 32};
    backend_->embed(out, *table, tokens);
    const auto got = backend_->download(out);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<float>(tokens[i / 32] * 32 + static_cast<int>(i % 32)));
    }
  }
}

// Launches wait until something is read; a list must not change under those that wait.
TEST_F(CudaBackendTest, OpsThatWaitKeepTheirOwnLists) {
  std::vector<std::byte> data(40 * 32 * sizeof(float));
  for (int i = 0; i < 40 * 32; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(data.data() + 4 * i, &value, 4);
  }
  const auto table = load(*backend_, Format::f32, 40, 32, data, WeightUse::lookup);
  const auto memory = backend_->allocate(4 * 32 * sizeof(float));
  const Rows all{reinterpret_cast<float*>(memory->data()), 4, 32, 32};
  for (int round = 0; round < 4; ++round) {  // the later rounds are replays
    for (int i = 0; i < 4; ++i) backend_->embed(all.slice(i, 1), *table, std::vector<TokenId>{7 * i + round});
    const auto got = backend_->download(all);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(got[32 * i], static_cast<float>(32 * (7 * i + round))) << round;
  }
}

// A norm quantises what it makes for the product behind it; anything that changes the rows in between must be seen.
TEST_F(CudaBackendTest, AProductBehindANormReadsTheRowsAsTheyAre) {
  constexpr int kCols = 288, kOutputs = 20;  // an odd number of sub-blocks
  const auto gain = load_vector(*backend_, random_values(kCols, 3));
  const auto weight = load(*backend_, Format::q8_0, kOutputs, kCols, random_weight(Format::q8_0, kOutputs, kCols, 5));
  for (const int rows : {1, 5, 17, 64}) {
    const std::size_t floats = static_cast<std::size_t>(rows) * (2 * kCols + kOutputs);
    const auto memory = backend_->allocate(floats * sizeof(float));
    float* const first = reinterpret_cast<float*>(memory->data());
    const Rows x{first, rows, kCols, kCols}, other{first + rows * kCols, rows, kCols, kCols},
        out{first + 2 * rows * kCols, rows, kOutputs, kOutputs};
    // What `change` leaves in x, multiplied: directly behind it, and from a copy that no op before has seen.
    const auto expect_true_products = [&](const auto& change) {
      const auto values = random_values(static_cast<std::size_t>(rows) * kCols, 7);
      backend_->write(memory->data(), std::as_bytes(std::span(values)));
      change();
      backend_->matmul(std::array{Projection{out, weight.get(), nullptr}}, x);
      const auto got = backend_->download(out);
      const std::vector<float> direct(got.begin(), got.end());
      const auto left = backend_->download(x);
      const std::vector<float> copy(left.begin(), left.end());
      backend_->write(reinterpret_cast<std::byte*>(other.data), std::as_bytes(std::span(copy)));
      backend_->matmul(std::array{Projection{out, weight.get(), nullptr}}, other);
      const auto want = backend_->download(out);
      EXPECT_EQ(direct, std::vector<float>(want.begin(), want.end())) << rows << " rows";
    };
    const auto norm = [&] { backend_->rms_norm(x, x, *gain, 1e-6f); };
    expect_true_products(norm);
    expect_true_products([&] { backend_->add_rms_norm(x, other, x, *gain, 1e-6f); });
    expect_true_products([&] {
      norm();
      backend_->scale(x, 3);
    });
    expect_true_products([&] {
      norm();
      const std::vector<float> fresh(static_cast<std::size_t>(rows) * kCols, 0.5f);
      backend_->write(memory->data(), std::as_bytes(std::span(fresh)));
    });
    const auto floats_weight =
        load(*backend_, Format::f32, kCols, kOutputs, random_weight(Format::f32, kCols, kOutputs, 5));
    expect_true_products([&] {
      norm();
      backend_->matmul(std::array{Projection{x, floats_weight.get(), nullptr}}, out);
    });
  }
}

// Rows beyond a decode pass go through the library; they may differ from the same rows in decode passes by the
// roundings of both: int8 inputs here, F16 inputs and weights there.
TEST_F(CudaBackendTest, PrefillDiffersFromDecodeByTheirRoundingsOnly) {
  constexpr int kRows = 70, kCols = 256, kOutputs = 20;
  for (const Format format : {Format::q4_k, Format::q8_0, Format::f16, Format::bf16, Format::f32}) {
    const auto data = random_weight(format, kOutputs, kCols, 5);
    std::vector<float> weights(kOutputs * kCols), x = random_values(kRows * kCols, 6);
    x[3] = 40000.f;  // a row that F16 holds only when it is scaled
    x[kCols + 3] = 1e6f;
    decode_blocks(format, data, weights);
    StagedBackend backend(TANDEM_GPU::make_cuda_backend(pool_));
    const auto weight = load(backend, format, kOutputs, kCols, data);
    std::vector<float> together(kRows * kOutputs), parts = together;
    const auto run = [&](std::vector<float>& out, int first, int rows) {
      const Projection p{rows_of(out, kRows, kOutputs).slice(first, rows), weight.get(), nullptr};
      backend.matmul({&p, 1}, rows_of(x, kRows, kCols).slice(first, rows));
    };
    run(together, 0, kRows);
    run(parts, 0, 64);
    run(parts, 64, kRows - 64);
    for (int r = 0; r < kRows; ++r) {
      for (int n = 0; n < kOutputs; ++n) {
        double bound = 0, row_peak = 0;
        for (int k = 0; k < kCols; ++k) row_peak = std::max(row_peak, std::fabs(double{x[r * kCols + k]}));
        for (int first = 0; first < kCols; first += 32) {
          double peak = 0;
          for (int k = first; k < first + 32; ++k) peak = std::max(peak, std::fabs(double{x[r * kCols + k]}));
          for (int k = first; k < first + 32; ++k) {
            const double w = std::fabs(weights[n * kCols + k]), product = w * std::fabs(x[r * kCols + k]);
            bound += product * (32 * std::sqrt(kCols) * 1.2e-7);  // sums in float
            if (!is_real(format)) bound += w * peak / 254;        // int8
            bound += product * (format == Format::f32 ? 0 : format == Format::bf16 ? 1.0 / 256 : 1.0 / 1024);
            // F16 inputs below 2^-14 of a scaled row lose up to 2^-25 of the scale.
            bound += w * 3e-8 * std::max(1.0, row_peak / 16384);
          }
        }
        ASSERT_NEAR(together[r * kOutputs + n], parts[r * kOutputs + n], bound * 1.001)
            << format_info(format).name << " row " << r << " output " << n;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::test
