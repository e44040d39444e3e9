// A backend whose gelu rounds input and output to f16, as llama.cpp's table of it does.
#pragma once
#include <cmath>
#include <memory>

#include "kernels/backend.h"
#include "src/base/half.h"

namespace tandem {

// Every other op is that of `inner`, which outlives this.
class HalfGeluBackend : public Backend {
 public:
  explicit HalfGeluBackend(Backend& inner) : inner_(inner) {}

  std::string_view name() const override { return inner_.name(); }
  int threads() const override { return inner_.threads(); }
  ThreadPool& pool() override { return inner_.pool(); }
  KvType preferred_kv_type() const override { return inner_.preferred_kv_type(); }
  std::unique_ptr<Weight> load(const WeightSource& source, WeightUse use) override { return inner_.load(source, use); }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  std::span<const float> download(Rows x) override { return inner_.download(x); }
  void embed(Rows out, const Weight& table, std::span<const TokenId> tokens) override {
    inner_.embed(out, table, tokens);
  }
  void rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) override {
    inner_.rms_norm(out, x, gain, epsilon);
  }
  void matmul(std::span<const Projection> projections, Rows x) override { inner_.matmul(projections, x); }
  void rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) override {
    inner_.rope(heads, head_dim, positions, table);
  }
  void store_kv(const KvLayer& layer, int base, Rows keys, Rows values) override {
    inner_.store_kv(layer, base, keys, values);
  }
  void attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                 Mask mask) override {
    inner_.attention(out, queries, layer, base, params, mask);
  }
  void add(Rows y, Rows x) override { inner_.add(y, x); }
  void scale(Rows x, float factor) override { inner_.scale(x, factor); }
  void soft_cap(Rows x, float cap) override { inner_.soft_cap(x, cap); }
  void gather_rows(Rows out, Rows x, std::span<const int> rows) override { inner_.gather_rows(out, x, rows); }
  void move_kv(const KvLayer& layer, int base, std::span<const int> path) override {
    inner_.move_kv(layer, base, path);
  }

  void gated(Rows out, Rows gate, Rows up, Activation) override {
    for (int i = 0; i < out.rows; ++i) {
      for (int k = 0; k < out.cols; ++k) out.row(i)[k] = from_table(gate.row(i)[k]) * up.row(i)[k];
    }
  }

 private:
  static float rounded(double x) { return half_to_float(float_to_half(static_cast<float>(x))); }
  static float from_table(float x) {
    constexpr float kEnd = 10;  // of the table
    if (std::abs(x) >= kEnd) return x > 0 ? x : 0;
    const double at = rounded(x);
    constexpr double kPi = 3.14159265358979323846;
    return rounded(at / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (at + 0.044715 * at * at * at))));
  }

  Backend& inner_;
};

}  // namespace tandem
