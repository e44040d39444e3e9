// Every op of every backend against the reference in double.
#include <algorithm>
#include <numeric>

#include "kernels/reference/reference_backend.h"
#include "tests/kernels/kernel_fixture.h"

namespace tandem::test {
namespace {

constexpr float kEpsilon = 1.1920929e-7f;

struct Quantised {
  std::vector<float> values;  // what the kernels multiply
  std::vector<float> scales;  // of each input
};

// How a backend rounds the inputs of a product.
struct InputRule {
  int step = 0;             // inputs that share an int8 scale; 0 = they stay floats
  bool short_sums = false;  // the scale is widened for sums of 16 bits (kernels/cpu/activation.h)
  double relative = 0;      // largest relative error of an input or weight that is rounded to fewer bits, both together
};

// Inputs of one pass, as int8 codes times scales.
Quantised quantise(const std::vector<float>& x, int cols, const InputRule& rule) {
  Quantised q{x, std::vector<float>(x.size(), 0.f)};
  if (rule.step == 0) return q;
  for (std::size_t row = 0; row < x.size(); row += cols) {
    for (int start = 0; start < cols; start += rule.step) {
      const int count = std::min(rule.step, cols - start);
      const float* v = x.data() + row + start;
      float peak = 0, sum16 = 0;
      for (int i = 0; i < count; ++i) peak = std::max(peak, std::fabs(v[i]));
      for (int i = 0; i + 16 <= count; i += 16) {
        float sum = 0;
        for (int k = i; k < i + 16; ++k) sum += std::fabs(v[k]);
        sum16 = std::max(sum16, sum);
      }
      float inverse = peak > 0 ? 127.f / peak : 0.f;
      if (rule.short_sums && peak > 0) inverse = std::min(inverse, 1015.f / sum16);
      for (int i = 0; i < count; ++i) {
        q.scales[row + start + i] = inverse > 0 ? 1.f / inverse : 0.f;
        q.values[row + start + i] = std::nearbyint(v[i] * inverse) * q.scales[row + start + i];
      }
    }
  }
  return q;
}

std::vector<int> first_numbers(int count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

struct MatmulCase {
  Format format;
  int rows, outputs, cols;
};

class Conformance : public BackendTest {
 protected:
  ThreadPool pool_{2};
  std::unique_ptr<Backend> reference_ = make_reference_backend(pool_);
  std::unique_ptr<Backend> backend() { return make(pool_); }
  // 1..65, where every vector may be the last and not full, and wider ones.
  std::vector<int> widths(std::initializer_list<int> wider) const {
    std::vector<int> all = sizes(first_numbers(65), {1, 31, 33});
    all.insert(all.end(), wider);
    return all;
  }
  InputRule rule(Format format, int rows) const;
  void check_matmul(Backend& backend, const MatmulCase& c, bool with_bias);
};

// The CPU has a scale for each 256 inputs of a K format; CUDA one for each 32, and beyond 64 rows F16 or BF16 inputs.
InputRule Conformance::rule(Format format, int rows) const {
  constexpr double kHalf = 1.0 / 2048, kBf16 = 1.0 / 256;  // of round to nearest
  if (on_cpu()) {
    return is_real(format) ? InputRule{} : InputRule{has_group_scale(format) ? 256 : 32, has_group_scale(format)};
  }
  if (rows <= 64) return is_real(format) ? InputRule{} : InputRule{32};
  return {0, false, format == Format::f32 ? 0 : format == Format::bf16 ? kBf16 : 2 * kHalf + kHalf * kHalf};
}

void Conformance::check_matmul(Backend& backend, const MatmulCase& c, bool with_bias) {
  const auto data = random_weight(c.format, c.outputs, c.cols, 7 + c.outputs);
  auto x = random_values(static_cast<std::size_t>(c.rows) * c.cols, 11 + c.rows);
  const InputRule inputs = rule(c.format, c.rows);
  auto quantised = quantise(x, c.cols, inputs);
  const auto bias_values = random_values(c.outputs, 5);
  std::vector<float> decoded(static_cast<std::size_t>(c.outputs) * c.cols);
  decode_blocks(c.format, data, decoded);

  const std::size_t size = static_cast<std::size_t>(c.rows) * c.outputs;
  std::vector<float> got(size, NAN), exact(size), same_inputs(size);
  const auto run = [&](Backend& b, std::vector<float>& input, std::vector<float>& out) {
    const auto weight = load(b, c.format, c.outputs, c.cols, data);
    const auto bias = load_vector(b, bias_values);
    const Projection p{rows_of(out, c.rows, c.outputs), weight.get(), with_bias ? bias.get() : nullptr};
    b.matmul({&p, 1}, rows_of(input, c.rows, c.cols));
  };
  run(backend, x, got);
  run(*reference_, x, exact);
  run(*reference_, quantised.values, same_inputs);

  for (int r = 0; r < c.rows; ++r) {
    for (int n = 0; n < c.outputs; ++n) {
      double products = 0, rounding = 0;
      for (int k = 0; k < c.cols; ++k) {
        const double w = std::fabs(decoded[static_cast<std::size_t>(n) * c.cols + k]);
        products += w * std::fabs(quantised.values[static_cast<std::size_t>(r) * c.cols + k]);
        rounding += w * quantised.scales[static_cast<std::size_t>(r) * c.cols + k] / 2;
      }
      const double magnitude = products + (with_bias ? std::fabs(bias_values[n]) : 0);
      const std::size_t i = static_cast<std::size_t>(r) * c.outputs + n;
      // Minima make the sum of |products| of the factored form larger than that of the decoded weights, at most
      // fourfold here.
      const double arithmetic = 4 * 8 * std::sqrt(c.cols) * kEpsilon * magnitude + kEpsilon * std::fabs(exact[i]) +
                                inputs.relative * products;
      ASSERT_NEAR(got[i], same_inputs[i], arithmetic)
          << format_info(c.format).name << " row " << r << " of " << c.rows << ", output " << n << " of [" << c.outputs
          << ", " << c.cols << "]";
      ASSERT_NEAR(got[i], exact[i], arithmetic + rounding * 1.0001);
    }
  }
}

TEST_P(Conformance, MatmulOfEveryFormat) {
  const auto tested = backend();
  for (const Format format : kAllFormats) {
    const int step = format_info(format).block_values;
    for (const int cols : sizes<int>({32, 64, 96, 256, 512, 576, 896, 1536, 4864}, {32, 96, 256, 512})) {
      if (cols % step != 0) continue;
      for (const int rows : {1, 3, 9}) {
        check_matmul(*tested, {format, rows, cols > 1000 ? 17 : 35, cols}, rows == 3);
      }
    }
  }
}

TEST_P(Conformance, MatmulOfManyRowCounts) {
  const auto tested = backend();
  for (const Format format : kAllFormats) {
    for (const int rows : sizes(first_numbers(65), {1, 8, 9, 16, 17, 64, 65})) {
      check_matmul(*tested, {format, rows, 5, 256}, true);
    }
    for (const int rows : sizes<int>({130, 200}, {130})) check_matmul(*tested, {format, rows, 5, 256}, true);
  }
}

TEST_P(Conformance, MatmulOfAnyNumberOfOutputs) {
  const auto tested = backend();
  for (const Format format : kAllFormats) {
    for (const int outputs : sizes(first_numbers(65), {1, 15, 16, 17, 33})) {
      check_matmul(*tested, {format, 2, outputs, 256}, outputs % 2 == 0);
    }
  }
}

// Every pair of format and shape that a matrix of these four models has.
constexpr struct {
  const char* model;
  Format format;
  int outputs, cols;
} kModelMatrices[] = {
    {"Qwen2.5-Coder 1.5B", Format::q4_k, 1536, 1536},    // q, attention output
    {"Qwen2.5-Coder 1.5B", Format::q4_k, 256, 1536},     // k, v
    {"Qwen2.5-Coder 1.5B", Format::q6_k, 256, 1536},     // v
    {"Qwen2.5-Coder 1.5B", Format::q4_k, 8960, 1536},    // gate, up
    {"Qwen2.5-Coder 1.5B", Format::q4_k, 1536, 8960},    // down
    {"Qwen2.5-Coder 1.5B", Format::q6_k, 1536, 8960},    // down
    {"Qwen2.5-Coder 1.5B", Format::q6_k, 151936, 1536},  // head
    {"Qwen2.5-Coder 0.5B", Format::q5_0, 896, 896},      // q, attention output
    {"Qwen2.5-Coder 0.5B", Format::q5_0, 128, 896},      // k, v
    {"Qwen2.5-Coder 0.5B", Format::q8_0, 128, 896},      // v
    {"Qwen2.5-Coder 0.5B", Format::q5_0, 4864, 896},     // gate, up
    {"Qwen2.5-Coder 0.5B", Format::q4_k, 896, 4864},     // down
    {"Qwen2.5-Coder 0.5B", Format::q6_k, 896, 4864},     // down
    {"Qwen2.5-Coder 0.5B", Format::q8_0, 151936, 896},   // head
    {"SmolLM2-135M", Format::q4_1, 576, 576},            // q, attention output
    {"SmolLM2-135M", Format::q4_1, 192, 576},            // k, v
    {"SmolLM2-135M", Format::q4_1, 1536, 576},           // gate, up
    {"SmolLM2-135M", Format::q4_1, 576, 1536},           // down
    {"SmolLM2-135M", Format::q8_0, 49152, 576},          // head
    {"Gemma 3 270M", Format::q5_0, 1024, 640},           // q
    {"Gemma 3 270M", Format::q5_0, 256, 640},            // k, v
    {"Gemma 3 270M", Format::q8_0, 256, 640},            // v
    {"Gemma 3 270M", Format::q4_k, 640, 1024},           // attention output
    {"Gemma 3 270M", Format::q5_0, 2048, 640},           // gate, up
    {"Gemma 3 270M", Format::q4_k, 640, 2048},           // down
    {"Gemma 3 270M", Format::q6_k, 640, 2048},           // down
    {"Gemma 3 270M", Format::q8_0, 262144, 640},         // head
};

// All inputs, but at most five tiles of outputs: all tiles of a matrix run the same code on the same layout, and the
// reference in double would take minutes for a whole head.
TEST_P(Conformance, MatmulOfTheMatricesOfTheModels) {
  const auto tested = backend();
  for (const auto& m : kModelMatrices) {
    SCOPED_TRACE(m.model);
    for (const int rows : sizes<int>({1, 2, 8}, {2})) {
      check_matmul(*tested, {m.format, rows, std::min(m.outputs, slow() ? 20 : 80), m.cols}, rows == 2);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Conformance, FloatMatmulOfAnyWidth) {
  const auto tested = backend();
  for (const Format format : {Format::f32, Format::f16, Format::bf16}) {
    for (const int cols : sizes(first_numbers(65), {1, 7, 8, 9, 33, 63, 64, 65})) {
      check_matmul(*tested, {format, 3, 18, cols}, false);
    }
    for (const int cols : sizes<int>({255, 257, 577}, {577})) check_matmul(*tested, {format, 3, 18, cols}, false);
  }
}

TEST_P(Conformance, ProjectionsOfDifferentFamiliesShareOneInput) {
  const auto tested = backend();
  constexpr int kCols = 512, kRows = 5;
  auto x = random_values(kRows * kCols, 3);
  std::vector<std::vector<float>> together, apart;
  std::vector<std::unique_ptr<Weight>> weights;
  std::vector<Projection> projections;
  int outputs = 40;
  for (const Format format : {Format::q4_k, Format::q8_0, Format::f16, Format::q6_k, Format::q5_0}) {
    weights.push_back(load(*tested, format, outputs, kCols, random_weight(format, outputs, kCols, outputs)));
    together.emplace_back(kRows * outputs, NAN);
    apart.emplace_back(kRows * outputs, NAN);
    projections.push_back({rows_of(together.back(), kRows, outputs), weights.back().get(), nullptr});
    const Projection alone{rows_of(apart.back(), kRows, outputs), weights.back().get(), nullptr};
    tested->matmul({&alone, 1}, rows_of(x, kRows, kCols));
    outputs += 7;
  }
  tested->matmul(projections, rows_of(x, kRows, kCols));
  EXPECT_EQ(together, apart);
}

TEST_P(Conformance, BadInputsStayVisible) {
  const auto tested = backend();
  for (const Format format : kAllFormats) {
    auto x = random_values(2 * 256, 9);
    x[256 + 40] = NAN;
    std::vector<float> out(2 * 20);
    const auto weight = load(*tested, format, 20, 256, random_weight(format, 20, 256, 1));
    const Projection p{rows_of(out, 2, 20), weight.get(), nullptr};
    tested->matmul({&p, 1}, rows_of(x, 2, 256));
    for (int n = 0; n < 20; ++n) {
      EXPECT_TRUE(std::isfinite(out[n])) << format_info(format).name;
      EXPECT_FALSE(std::isfinite(out[20 + n])) << format_info(format).name;
    }
  }
}

TEST_P(Conformance, ZeroInputsGiveTheBias) {
  const auto tested = backend();
  for (const Format format : kAllFormats) {
    std::vector<float> x(512, 0.f), out(40, NAN);
    const auto bias_values = random_values(20, 4);
    const auto weight = load(*tested, format, 20, 256, random_weight(format, 20, 256, 1));
    const auto bias = load_vector(*tested, bias_values);
    const Projection p{rows_of(out, 2, 20), weight.get(), bias.get()};
    tested->matmul({&p, 1}, rows_of(x, 2, 256));
    for (int i = 0; i < 40; ++i) EXPECT_EQ(out[i], bias_values[i % 20]) << format_info(format).name;
  }
}

TEST_P(Conformance, EmbedDecodesRowsExactly) {
  const auto tested = backend();
  for (const Format format : kAllFormats) {
    const auto data = random_weight(format, 50, 256, 2);
    for (const WeightUse use : {WeightUse::lookup, WeightUse::both}) {
      const std::vector<TokenId> tokens{0, 49, 7, 7};
      std::vector<float> got(4 * 256), want(4 * 256);
      const auto weight = load(*tested, format, 50, 256, data, use),
                 plain = load(*reference_, format, 50, 256, data, use);
      tested->embed(rows_of(got, 4, 256), *weight, tokens);
      reference_->embed(rows_of(want, 4, 256), *plain, tokens);
      EXPECT_EQ(got, want) << format_info(format).name;
    }
  }
}

TEST_P(Conformance, RmsNorm) {
  const auto tested = backend();
  for (const int cols : widths({576, 640, 896, 1536, 4863})) {
    for (const int rows : {1, 2, 33}) {
      auto x = random_values(static_cast<std::size_t>(rows) * cols, cols);
      const auto gain = random_values(cols, 3);
      std::vector<float> got(x.size()), want(x.size());
      tested->rms_norm(rows_of(got, rows, cols), rows_of(x, rows, cols), *load_vector(*tested, gain), 1e-6f);
      reference_->rms_norm(rows_of(want, rows, cols), rows_of(x, rows, cols), *load_vector(*reference_, gain), 1e-6f);
      // The sum has cols positive terms, so its relative error is below (cols / 16 + 6) eps, half of it after the root.
      const float relative = (static_cast<float>(cols) / 32 + 8) * kEpsilon;
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(got[i], want[i], relative * std::fabs(want[i])) << cols;
    }
  }
}

TEST_P(Conformance, RopeOfBothStyles) {
  const auto tested = backend();
  constexpr int kHeadDim = 20, kDims = 12, kHeads = 3, kPositions = 9;
  std::vector<float> cos(kPositions * kDims / 2), sin(cos.size());
  for (std::size_t i = 0; i < cos.size(); ++i) cos[i] = std::cos(0.1f * i), sin[i] = std::sin(0.1f * i);
  for (const RopeStyle style : {RopeStyle::adjacent, RopeStyle::halves}) {
    const RopeTable table{cos.data(), sin.data(), kDims, style};
    const std::vector<Position> positions{8, 0, 3, 3};
    auto got = random_values(4 * kHeads * kHeadDim, 6), want = got;
    const auto before = got;
    tested->rope(rows_of(got, 4, kHeads * kHeadDim), kHeadDim, positions, table);
    reference_->rope(rows_of(want, 4, kHeads * kHeadDim), kHeadDim, positions, table);
    EXPECT_NE(got, before);
    for (std::size_t i = 0; i < got.size(); ++i) {
      // Two products and a sum of numbers no larger than the largest input.
      ASSERT_NEAR(got[i], want[i], 3 * kEpsilon * 32) << i;
    }
  }
}

TEST_P(Conformance, GatedAndAdd) {
  const auto tested = backend();
  for (const int cols : widths({100, 2048, 4864, 8960})) {
    for (const int rows : {1, 7}) {
      auto gate = random_values(static_cast<std::size_t>(rows) * cols, 1), up = random_values(gate.size(), 2);
      gate[0] = -300.f;
      gate.back() = 300.f;
      std::vector<float> got(gate.size()), want(gate.size());
      for (const Activation activation : {Activation::silu, Activation::gelu}) {
        tested->gated(rows_of(got, rows, cols), rows_of(gate, rows, cols), rows_of(up, rows, cols), activation);
        reference_->gated(rows_of(want, rows, cols), rows_of(gate, rows, cols), rows_of(up, rows, cols), activation);
        for (std::size_t i = 0; i < gate.size(); ++i) {
          // exp within 2 ulp, then a sum, a division and a product; that of gelu has an argument of three roundings,
          // and beyond 90 it is 0 or infinite.
          const float x = gate[i], argument = 1.6f * std::fabs(x + 0.044715f * x * x * x);
          const float roundings = 8 + (activation == Activation::gelu ? 4 * std::min(argument, 90.f) : 0.f);
          ASSERT_NEAR(got[i], want[i], roundings * kEpsilon * std::fabs(want[i]) + 1e-33) << x;
        }
      }
      auto y = gate;
      tested->add(rows_of(y, rows, cols), rows_of(up, rows, cols));
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], gate[i] + up[i]);
    }
  }
}

TEST_P(Conformance, ScaleAndSoftCap) {
  const auto tested = backend();
  for (const int cols : widths({100, 640, 8960})) {
    for (const int rows : {1, 7}) {
      auto x = random_values(static_cast<std::size_t>(rows) * cols, 1);
      for (float& v : x) v *= 10;
      x[0] = -1e4f;
      x.back() = 1e4f;
      auto scaled = x;
      tested->scale(rows_of(scaled, rows, cols), 25.298221f);
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(scaled[i], x[i] * 25.298221f);
      auto got = x, want = x;
      tested->soft_cap(rows_of(got, rows, cols), 30);
      reference_->soft_cap(rows_of(want, rows, cols), 30);
      // tanh = 1 - 2 / (exp + 1): what the exponential loses counts at most half, and all terms are below 2.
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(got[i], want[i], 8 * kEpsilon * 30) << x[i];
    }
  }
}

TEST_P(Conformance, GatherRows) {
  const auto tested = backend();
  auto x = random_values(5 * 33, 1);
  std::vector<float> got(3 * 33), want(3 * 33);
  const std::vector<int> rows{4, 0, 4};
  tested->gather_rows(rows_of(got, 3, 33), rows_of(x, 5, 33), rows);
  reference_->gather_rows(rows_of(want, 3, 33), rows_of(x, 5, 33), rows);
  EXPECT_EQ(got, want);
}

INSTANTIATE_TEST_SUITE_P(Backends, Conformance, testing::ValuesIn(all_backends()), backend_test_name);

}  // namespace
}  // namespace tandem::test
