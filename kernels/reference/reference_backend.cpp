// Thread mapping: matmul splits weight rows, attention splits (row, head) pairs, the rest runs on the caller.
// A weight row is decoded once a pass and read by all activation rows; nothing is repacked or kept decoded.
#include "kernels/reference/reference_backend.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "src/base/half.h"

namespace tandem {
namespace {

struct ReferenceWeight final : Weight {
  ReferenceWeight(const WeightSource& s) : Weight(s.format, s.rows, s.cols, s.data.size()), data(s.data) {
    if (s.file) return;
    owned.assign(s.data.begin(), s.data.end());
    data = owned;
  }
  std::vector<std::byte> owned;  // of a source without a file
  std::span<const std::byte> data;

  void decode_row(int row, std::span<float> out) const {
    const std::size_t row_bytes = bytes / rows;
    decode_blocks(format, data.subspan(row * row_bytes, row_bytes), out);
  }
};

struct VectorWeight final : Weight {
  VectorWeight(const WeightSource& s) : Weight(s.format, s.rows, s.cols, s.data.size()), values(s.cols) {
    decode_blocks(s.format, s.data, values);
  }
  std::vector<float> values;
};

const ReferenceWeight& matrix(const Weight& w) { return static_cast<const ReferenceWeight&>(w); }
const std::vector<float>& vector(const Weight& w) { return static_cast<const VectorWeight&>(w).values; }

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t bytes) : memory_((bytes + sizeof(Line) - 1) / sizeof(Line)) {}
  std::byte* data() override { return reinterpret_cast<std::byte*>(memory_.data()); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_;
};

float half_at(const std::byte* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return half_to_float(bits);
}
void put_half(std::byte* p, float value) {
  const std::uint16_t bits = float_to_half(value);
  std::memcpy(p, &bits, sizeof bits);
}

// 32 floats to a block of the cache; not finite: a NaN scale.
void put_q8_0(std::byte* block, const float* x) {
  float peak = 0;
  for (int k = 0; k < kKvBlock; ++k) peak = std::max(peak, std::abs(x[k]));
  const bool finite = std::all_of(x, x + kKvBlock, [](float v) { return std::isfinite(v); });
  put_half(block, finite ? peak / 127 : NAN);
  const float scale = half_at(block);
  for (int k = 0; k < kKvBlock; ++k) {
    const float code = scale > 0 ? std::nearbyint(std::clamp(x[k] / scale, -127.f, 127.f)) : 0;
    block[2 + k] = static_cast<std::byte>(static_cast<std::int8_t>(code));
  }
}

// One cached vector as floats.
class CachedRow {
 public:
  CachedRow(const KvLayer& layer, const std::byte* part, int kv_head, int place)
      : bytes_(part + layer.offset(kv_head, place)), type_(layer.type) {}
  float operator[](int i) const {
    if (type_ == KvType::f32) {
      float value;
      std::memcpy(&value, bytes_ + 4 * i, 4);
      return value;
    }
    if (type_ == KvType::f16) return half_at(bytes_ + 2 * i);
    const std::byte* block = bytes_ + i / kKvBlock * kKvBlockBytes;
    return half_at(block) * static_cast<float>(static_cast<std::int8_t>(block[2 + i % kKvBlock]));
  }

 private:
  const std::byte* bytes_;
  KvType type_;
};

// Activation rows in double, eight side by side, so that a compiler can add up eight rows at once. Each row's own sum
// keeps the order of its columns.
class RowGroups {
 public:
  static constexpr int kRows = 8;
  using Values = std::array<double, kRows>;

  explicit RowGroups(Rows x) : cols_(x.cols), count_((x.rows + kRows - 1) / kRows) {
    values_.resize(static_cast<std::size_t>(count_) * cols_);
    for (int i = 0; i < x.rows; ++i) {
      for (int k = 0; k < cols_; ++k) values_[std::size_t{1} * (i / kRows) * cols_ + k][i % kRows] = x.row(i)[k];
    }
  }
  int count() const { return count_; }

  // start + w . x of the eight rows of a group.
  Values dot(int group, std::span<const float> w, double start) const {
    const Values* x = values_.data() + std::size_t{1} * group * cols_;
    Values sums;
    sums.fill(start);
    for (int k = 0; k < cols_; ++k) {
      for (int i = 0; i < kRows; ++i) sums[i] += double{w[k]} * x[k][i];
    }
    return sums;
  }

 private:
  int cols_, count_;
  std::vector<Values> values_;  // [count, cols]; rows past the last are 0
};

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(ThreadPool& pool) : pool_(pool) {}

  std::string_view name() const override { return "reference"; }
  int threads() const override { return pool_.threads(); }
  ThreadPool& pool() override { return pool_; }
  KvType preferred_kv_type() const override { return KvType::f32; }

  std::unique_ptr<Weight> load(const WeightSource& source, WeightUse use) override {
    if (use == WeightUse::vector) return std::make_unique<VectorWeight>(source);
    return std::make_unique<ReferenceWeight>(source);
  }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<HostBuffer>(bytes); }
  std::span<const float> download(Rows x) override {
    assert(x.stride == x.cols);
    return {x.data, static_cast<std::size_t>(x.rows) * x.cols};
  }

  void embed(Rows out, const Weight& table, std::span<const TokenId> tokens) override {
    for (int i = 0; i < out.rows; ++i) {
      matrix(table).decode_row(tokens[i], {out.row(i), static_cast<std::size_t>(out.cols)});
    }
  }

  void rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) override {
    for (int i = 0; i < x.rows; ++i) {
      double squares = 0;
      for (int k = 0; k < x.cols; ++k) squares += double{x.row(i)[k]} * x.row(i)[k];
      const double scale = 1 / std::sqrt(squares / x.cols + epsilon);
      for (int k = 0; k < x.cols; ++k) out.row(i)[k] = static_cast<float>(x.row(i)[k] * scale * vector(gain)[k]);
    }
  }

  void matmul(std::span<const Projection> projections, Rows x) override {
    const RowGroups groups(x);
    for (const Projection& p : projections) {
      pool_.run([&](int thread) {
        std::vector<float> w(x.cols);
        const auto [first, last] = pool_.share(p.weight->rows, thread);
        for (int n = first; n < last; ++n) {
          matrix(*p.weight).decode_row(n, w);
          const double bias = p.bias ? vector(*p.bias)[n] : 0.0;
          for (int group = 0; group < groups.count(); ++group) {
            const RowGroups::Values sums = groups.dot(group, w, bias);
            const int row = group * RowGroups::kRows;
            for (int i = row; i < std::min(row + RowGroups::kRows, x.rows); ++i) {
              p.out.row(i)[n] = static_cast<float>(sums[i - row]);
            }
          }
        }
      });
    }
  }

  void rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) override {
    const int half = table.dims / 2;
    for (int i = 0; i < heads.rows; ++i) {
      const float* cos = table.cos + std::size_t{1} * positions[i] * half;
      const float* sin = table.sin + std::size_t{1} * positions[i] * half;
      for (int h = 0; h < heads.cols; h += head_dim) {
        float* head = heads.row(i) + h;
        for (int k = 0; k < half; ++k) {
          float& a = table.style == RopeStyle::halves ? head[k] : head[2 * k];
          float& b = table.style == RopeStyle::halves ? head[k + half] : head[2 * k + 1];
          const double x = a, y = b;
          a = static_cast<float>(x * cos[k] - y * sin[k]);
          b = static_cast<float>(x * sin[k] + y * cos[k]);
        }
      }
    }
  }

  void store_kv(const KvLayer& layer, int base, Rows keys, Rows values) override {
    for (int i = 0; i < keys.rows; ++i) {
      for (int h = 0; h < layer.kv_heads; ++h) {
        store(layer, layer.keys + layer.offset(h, base + i), keys.row(i) + h * layer.head_dim);
        store(layer, layer.values + layer.offset(h, base + i), values.row(i) + h * layer.head_dim);
      }
    }
  }

  void attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                 Mask mask) override {
    const int heads = queries.cols / layer.head_dim;
    pool_.run([&](int thread) {
      const auto [first, last] = pool_.share(queries.rows * heads, thread);
      for (int item = first; item < last; ++item) {
        attend_one(out, queries, layer, base, params, mask, item / heads, item % heads, heads / layer.kv_heads);
      }
    });
  }

  void gated(Rows out, Rows gate, Rows up, Activation activation) override {
    for (int i = 0; i < out.rows; ++i) {
      for (int k = 0; k < out.cols; ++k) {
        out.row(i)[k] = static_cast<float>(activate(gate.row(i)[k], activation) * up.row(i)[k]);
      }
    }
  }

  void add(Rows y, Rows x) override {
    for (int i = 0; i < y.rows; ++i) {
      for (int k = 0; k < y.cols; ++k) y.row(i)[k] += x.row(i)[k];
    }
  }

  void scale(Rows x, float factor) override {
    for (int i = 0; i < x.rows; ++i) {
      for (int k = 0; k < x.cols; ++k) x.row(i)[k] *= factor;
    }
  }

  void soft_cap(Rows x, float cap) override {
    for (int i = 0; i < x.rows; ++i) {
      for (int k = 0; k < x.cols; ++k) x.row(i)[k] = static_cast<float>(capped(x.row(i)[k], cap));
    }
  }

  void gather_rows(Rows out, Rows x, std::span<const int> rows) override {
    for (int i = 0; i < out.rows; ++i) std::memmove(out.row(i), x.row(rows[i]), x.cols * sizeof(float));
  }

  void move_kv(const KvLayer& layer, int base, std::span<const int> path) override {
    for (std::byte* part : {layer.keys, layer.values}) {
      for (int h = 0; h < layer.kv_heads; ++h) {
        for (int i = 0; i < static_cast<int>(path.size()); ++i) {
          std::memmove(part + layer.offset(h, base + i), part + layer.offset(h, base + path[i]), layer.slot_bytes());
        }
      }
    }
  }

 private:
  static double activate(double x, Activation activation) {
    // 1 + tanh(u) = 2 / (1 + exp(-2u)), which loses nothing where tanh is near -1.
    const double u =
        activation == Activation::silu ? x / 2 : std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return x / (1 + std::exp(-2 * u));
  }

  static double capped(double x, double cap) { return cap * std::tanh(x / cap); }

  static void store(const KvLayer& layer, std::byte* to, const float* from) {
    switch (layer.type) {
      case KvType::f32:
        std::memcpy(to, from, layer.slot_bytes());
        break;
      case KvType::f16:
        for (int k = 0; k < layer.head_dim; ++k) put_half(to + 2 * k, from[k]);
        break;
      case KvType::q8_0:
        for (int k = 0; k < layer.head_dim; k += kKvBlock) put_q8_0(to + k / kKvBlock * kKvBlockBytes, from + k);
    }
  }

  // Places that row `row` sees, in path order.
  static std::vector<int> visible_places(int base, int row, const AttentionParams& params, Mask mask) {
    std::vector<int> places;
    for (int place = 0; place < base; ++place) places.push_back(place);
    for (int j = 0; j <= row; ++j) {
      if (mask.causal() || mask.ancestors[row] >> j & 1) places.push_back(base + j);
    }
    if (params.window > 0 && static_cast<int>(places.size()) > params.window) {
      places.erase(places.begin(), places.end() - params.window);
    }
    return places;
  }

  static void attend_one(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                         Mask mask, int row, int head, int group) {
    const std::vector<int> places = visible_places(base, row, params, mask);
    const float* query = queries.row(row) + head * layer.head_dim;
    std::vector<double> weights(places.size());
    double top = -INFINITY, total = 0;
    for (std::size_t j = 0; j < places.size(); ++j) {
      const CachedRow key(layer, layer.keys, head / group, places[j]);
      double dot = 0;
      for (int k = 0; k < layer.head_dim; ++k) dot += double{query[k]} * key[k];
      weights[j] = dot * params.scale;
      if (params.soft_cap > 0) weights[j] = capped(weights[j], params.soft_cap);
      top = std::max(top, weights[j]);
    }
    for (double& w : weights) total += w = std::exp(w - top);
    std::vector<double> sum(layer.head_dim);
    for (std::size_t j = 0; j < places.size(); ++j) {
      const CachedRow value(layer, layer.values, head / group, places[j]);
      for (int k = 0; k < layer.head_dim; ++k) sum[k] += weights[j] / total * value[k];
    }
    float* to = out.row(row) + head * layer.head_dim;
    for (int k = 0; k < layer.head_dim; ++k) to[k] = static_cast<float>(sum[k]);
  }

  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(ThreadPool& pool) { return std::make_unique<ReferenceBackend>(pool); }

}  // namespace tandem
