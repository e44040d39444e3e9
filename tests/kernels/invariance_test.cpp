// A row's bits never depend on the other rows of the call, on their number or on the threads.
#include "tests/kernels/kernel_fixture.h"

namespace tandem::test {
namespace {

class Invariance : public BackendTest {
 protected:
  // The threads of a device are always the same.
  std::vector<int> thread_counts() const { return on_cpu() ? std::vector{1, 2, 3, 4} : std::vector{1}; }
  // Every m = 1..64 and, on the CPU, 100 and 511; with more threads than two, where a core may have to be shared, fewer
  // beyond 12. The CUDA kernels promise it for passes of up to 64 rows.
  std::vector<int> row_counts(int threads) const {
    if (slow()) return {1, 2, 8, 9, 16, 17};
    std::vector<int> counts;
    for (int m = 1; m <= 64; m += threads > 2 && m > 12 ? 13 : 1) counts.push_back(m);
    if (threads <= 2 && on_cpu()) counts.insert(counts.end(), {100, 511});
    return counts;
  }
};

TEST_P(Invariance, MatmulRowsEqualTheRowAlone) {
  constexpr int kCols = 512;
  const int outputs = slow() ? 19 : 35, rows_in_all = on_cpu() ? 511 : row_counts(1).back();
  auto x = random_values(rows_in_all * kCols, 3);
  for (const Format format : kAllFormats) {
    const auto data = random_weight(format, outputs, kCols, 5);
    std::vector<float> alone(rows_in_all * outputs, NAN);
    for (const int threads : thread_counts()) {
      ThreadPool pool(threads);
      const auto tested = make(pool);
      const auto weight = load(*tested, format, outputs, kCols, data);
      const auto run = [&](std::vector<float>& out, int first, int rows) {
        const Projection p{rows_of(out, rows_in_all, outputs).slice(first, rows), weight.get(), nullptr};
        tested->matmul({&p, 1}, rows_of(x, rows_in_all, kCols).slice(first, rows));
      };
      if (threads == 1) {
        for (int i = 0; i < rows_in_all; ++i) run(alone, i, 1);
      }
      std::vector<float> together(alone.size());
      for (const int rows : row_counts(threads)) {
        std::fill(together.begin(), together.end(), NAN);
        run(together, 0, rows);
        ASSERT_EQ(std::memcmp(together.data(), alone.data(), sizeof(float) * rows * outputs), 0)
            << format_info(format).name << ", " << rows << " rows, " << threads << " threads";
      }
    }
  }
}

TEST_P(Invariance, MatmulRowsDoNotSeeTheirNeighbours) {
  constexpr int kCols = 256, kOutputs = 16, kRows = 20;
  ThreadPool pool(2);
  const auto tested = make(pool);
  for (const Format format : kAllFormats) {
    const auto weight = load(*tested, format, kOutputs, kCols, random_weight(format, kOutputs, kCols, 5));
    auto x = random_values(kRows * kCols, 3), other = random_values(kRows * kCols, 4);
    std::copy_n(x.begin() + 7 * kCols, kCols, other.begin() + 13 * kCols);
    std::vector<float> a(kRows * kOutputs), b(kRows * kOutputs);
    const Projection pa{rows_of(a, kRows, kOutputs), weight.get(), nullptr},
        pb{rows_of(b, kRows, kOutputs), weight.get(), nullptr};
    tested->matmul({&pa, 1}, rows_of(x, kRows, kCols));
    tested->matmul({&pb, 1}, rows_of(other, kRows, kCols));
    EXPECT_EQ(std::memcmp(a.data() + 7 * kOutputs, b.data() + 13 * kOutputs, sizeof(float) * kOutputs), 0)
        << format_info(format).name;
  }
}

TEST_P(Invariance, RowOpsEqualTheRowAlone) {
  constexpr int kCols = 896, kRows = 100;
  const auto source = random_values(kRows * kCols, 1), other = random_values(kRows * kCols, 2),
             gain_values = random_values(kCols, 3);
  constexpr int kOps = 6;
  std::vector<std::vector<float>> alone(kOps, std::vector<float>(kRows * kCols));
  for (const int threads : thread_counts()) {
    ThreadPool pool(threads);
    const auto tested = make(pool);
    const auto gain = load_vector(*tested, gain_values);
    auto x = source, up = other;
    const auto run = [&](std::vector<std::vector<float>>& out, int first, int rows) {
      const Rows in = rows_of(x, kRows, kCols).slice(first, rows), u = rows_of(up, kRows, kCols).slice(first, rows);
      tested->rms_norm(rows_of(out[0], kRows, kCols).slice(first, rows), in, *gain, 1e-6f);
      tested->gated(rows_of(out[1], kRows, kCols).slice(first, rows), in, u, Activation::silu);
      out[2] = source;
      tested->add(rows_of(out[2], kRows, kCols).slice(first, rows), u);
      tested->gated(rows_of(out[3], kRows, kCols).slice(first, rows), in, u, Activation::gelu);
      out[4] = out[5] = source;
      tested->scale(rows_of(out[4], kRows, kCols).slice(first, rows), 25.3f);
      tested->soft_cap(rows_of(out[5], kRows, kCols).slice(first, rows), 2);
    };
    if (threads == 1) {
      std::vector<std::vector<float>> one(kOps, std::vector<float>(kRows * kCols));
      for (int i = 0; i < kRows; ++i) {
        run(one, i, 1);
        for (int k = 0; k < kOps; ++k) std::copy_n(one[k].begin() + i * kCols, kCols, alone[k].begin() + i * kCols);
      }
    }
    for (const int rows : {1, 2, 3, 17, 64, 100}) {
      std::vector<std::vector<float>> together(kOps, std::vector<float>(kRows * kCols));
      run(together, 0, rows);
      for (int k = 0; k < kOps; ++k) {
        ASSERT_EQ(std::memcmp(together[k].data(), alone[k].data(), sizeof(float) * rows * kCols), 0)
            << "op " << k << ", " << rows << " rows, " << threads << " threads";
      }
    }
  }
}

TEST_P(Invariance, AddWithNormGivesTheBitsOfItsParts) {
  for (const int threads : thread_counts()) {
    ThreadPool pool(threads);
    const auto tested = make(pool);
    for (const int cols : {1, 17, 65, 896, 1536}) {
      const auto gain = load_vector(*tested, random_values(cols, 3));
      for (const int rows : {1, 2, 9, 64}) {
        auto x = random_values(static_cast<std::size_t>(rows) * cols, 1), hidden = random_values(x.size(), 2),
             parts_hidden = hidden;
        std::vector<float> out(x.size(), NAN), parts = out;
        const Rows parts_sum = rows_of(parts_hidden, rows, cols), sum = rows_of(hidden, rows, cols);
        tested->Backend::add_rms_norm(rows_of(parts, rows, cols), parts_sum, rows_of(x, rows, cols), *gain, 1e-6f);
        tested->add_rms_norm(rows_of(out, rows, cols), sum, rows_of(x, rows, cols), *gain, 1e-6f);
        ASSERT_EQ(std::memcmp(out.data(), parts.data(), sizeof(float) * out.size()), 0) << rows << " x " << cols;
        ASSERT_EQ(std::memcmp(hidden.data(), parts_hidden.data(), sizeof(float) * out.size()), 0);

        const auto again = random_values(x.size(), 2);
        std::copy(again.begin(), again.end(), hidden.begin());
        tested->add_rms_norm(rows_of(x, rows, cols), sum, rows_of(x, rows, cols), *gain, 1e-6f);  // in place
        ASSERT_EQ(std::memcmp(x.data(), parts.data(), sizeof(float) * out.size()), 0) << rows << " x " << cols;
      }
    }
  }
}

TEST_P(Invariance, GatedMatmulGivesTheBitsOfItsParts) {
  constexpr int kCols = 256, kMaxRows = 200;
  auto x = random_values(kMaxRows * kCols, 3);
  for (const int threads : thread_counts()) {
    ThreadPool pool(threads);
    const auto tested = make(pool);
    for (const Format format : kAllFormats) {
      // Fewer tiles than threads, a last tile that is not full, and gate and up of different families.
      const Format other = format == Format::q4_k ? Format::q8_0 : format;
      for (const int outputs : sizes<int>({5, 35, 200}, {5, 35})) {
        const auto gate = load(*tested, format, outputs, kCols, random_weight(format, outputs, kCols, 5)),
                   up = load(*tested, other, outputs, kCols, random_weight(other, outputs, kCols, 6));
        const auto bias = load_vector(*tested, random_values(outputs, 7));
        for (const int rows : sizes<int>({1, 2, 7, 8, 64, kMaxRows}, {1, 8, 33, 65})) {
          if (rows > 8 && threads > 2) continue;
          std::vector<float> parts(static_cast<std::size_t>(rows) * outputs, NAN), fused = parts, up_out = parts;
          const auto run = [&](std::vector<float>& out, auto&& op) {
            op(Projection{rows_of(out, rows, outputs), gate.get(), bias.get()},
               Projection{rows_of(up_out, rows, outputs), up.get(), nullptr}, rows_of(x, rows, kCols));
          };
          const Activation activation = rows % 2 == 0 ? Activation::silu : Activation::gelu;
          run(parts, [&](const Projection& g, const Projection& u, Rows in) {
            tested->Backend::gated_matmul(g, u, in, activation);
          });
          run(fused,
              [&](const Projection& g, const Projection& u, Rows in) { tested->gated_matmul(g, u, in, activation); });
          ASSERT_EQ(std::memcmp(fused.data(), parts.data(), sizeof(float) * parts.size()), 0)
              << format_info(format).name << " [" << outputs << "], " << rows << " rows, " << threads << " threads";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Invariance, testing::ValuesIn(all_backends()), backend_test_name);

}  // namespace
}  // namespace tandem::test
