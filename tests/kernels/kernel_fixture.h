// What the kernel tests share: seeded inputs, random weights of every format, backends by instruction set.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/registry.h"
#include "src/base/error.h"
#include "src/base/half.h"
#include "tests/kernels/staged_backend.h"

namespace tandem::test {

inline constexpr Format kAllFormats[] = {Format::f32,  Format::f16,  Format::bf16, Format::q4_0,
                                         Format::q4_1, Format::q5_0, Format::q5_1, Format::q8_0,
                                         Format::q4_k, Format::q5_k, Format::q6_k};
inline constexpr Isa kAllIsas[] = {Isa::portable, Isa::avx2, Isa::avx512};

inline bool is_real(Format f) { return f == Format::f32 || f == Format::f16 || f == Format::bf16; }
inline bool has_group_scale(Format f) { return f == Format::q4_k || f == Format::q5_k || f == Format::q6_k; }

// Normal values, one in fifty six times as large.
inline std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(random) * (random() % 50 == 0 ? 6.f : 1.f);
  return values;
}

inline void put_half(std::byte* p, float value) {
  const std::uint16_t bits = float_to_half(value);
  std::memcpy(p, &bits, sizeof bits);
}

// Random blocks: every code and sub-scale, block scales of both signs.
inline std::vector<std::byte> random_weight(Format format, int rows, int cols, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const FormatInfo& info = format_info(format);
  const std::size_t blocks = static_cast<std::size_t>(rows) * cols / info.block_values;
  std::vector<std::byte> data(blocks * info.block_bytes);
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < blocks; ++i) {
    std::byte* block = data.data() + i * info.block_bytes;
    const float value = normal(random);
    switch (format) {
      case Format::f32:
        std::memcpy(block, &value, sizeof value);
        break;
      case Format::f16:
        put_half(block, value);
        break;
      case Format::bf16: {
        const std::uint16_t bits = float_to_bf16(value);
        std::memcpy(block, &bits, sizeof bits);
        break;
      }
      case Format::q6_k:
        put_half(block + 208, value / 1000);
        break;
      case Format::q4_k:
      case Format::q5_k:
        put_half(block, value / 300);
        put_half(block + 2, normal(random) / 100);
        break;
      case Format::q4_1:
      case Format::q5_1:
        put_half(block, value / 16);
        put_half(block + 2, normal(random));
        break;
      default:
        put_half(block, value / (format == Format::q8_0 ? 100.f : 10.f));
        break;
    }
  }
  return data;
}

inline std::unique_ptr<Weight> load(Backend& backend, Format format, int rows, int cols,
                                    const std::vector<std::byte>& data, WeightUse use = WeightUse::matmul) {
  return backend.load({format, rows, cols, data, nullptr}, use);
}

inline std::unique_ptr<Weight> load_vector(Backend& backend, const std::vector<float>& values) {
  std::vector<std::byte> data(values.size() * sizeof(float));
  std::memcpy(data.data(), values.data(), data.size());
  return backend.load({Format::f32, 1, static_cast<int>(values.size()), data, nullptr}, WeightUse::vector);
}

inline Rows rows_of(std::vector<float>& values, int rows, int cols) { return {values.data(), rows, cols, cols}; }

// One test body for every backend: each instruction set of the CPU and, where they are built, the CUDA kernels, on a
// device and in their emulation. Those that this machine lacks are skipped and say so.
class BackendTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string why = missing();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  bool on_cpu() const { return GetParam().starts_with("cpu-"); }
  // The emulation takes a fiber for each thread: it gets the sizes that a kernel can tell apart, not all.
  bool slow() const { return GetParam() == "cuda-simt"; }
  template <typename T>
  std::vector<T> sizes(std::vector<T> all, std::vector<T> few) const {
    return slow() ? few : all;
  }
  // Its rows and caches are host memory.
  std::unique_ptr<Backend> make(ThreadPool& pool) const {
    if (on_cpu()) return make_cpu_backend(isa(), pool);
    return std::make_unique<StagedBackend>(make_backend(GetParam(), pool));
  }

 private:
  Isa isa() const {
    return *std::ranges::find_if(kAllIsas, [](Isa i) { return GetParam() == "cpu-" + std::string(name_of(i)); });
  }
  std::string missing() const {
    if (on_cpu()) return machine_has(isa()) ? "" : "this machine lacks " + std::string(name_of(isa()));
    try {
      ThreadPool pool(1);
      make_backend(GetParam(), pool);
      return "";
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) throw;
      return error.what();
    }
  }
};

// Those that the tests of this program are made for: TANDEM_TEST_BACKEND, or every instruction set of the CPU.
inline std::vector<std::string> all_backends() {
#ifdef TANDEM_TEST_BACKEND
  return {TANDEM_TEST_BACKEND};
#else
  std::vector<std::string> names;
  for (const Isa isa : kAllIsas) names.push_back("cpu-" + std::string(name_of(isa)));
  return names;
#endif
}

inline std::string backend_test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.starts_with("cpu-") ? info.param.substr(4) : info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace tandem::test
