#include "src/model/transformer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "src/base/error.h"
#include "src/model/rope.h"

namespace tandem {

// All buffers of a pass, each [rows, .]; `hidden` is the residual stream.
struct Transformer::Activations {
  Rows hidden, normed;     // width
  Rows query, key, value;  // query_width, kv_width, kv_width
  Rows attended;           // query_width
  Rows gate, up;           // ffn
};

Transformer::Transformer(ModelSpec spec, const GgufFile& file, Backend& backend, int max_rows, int max_positions,
                         const WeightOptions& options)
    : spec_(std::move(spec)),
      backend_(backend),
      max_rows_(std::max(max_rows, kMaxTreeNodes)),
      max_positions_(std::min(max_positions, spec_.context)),
      weights_(load_weights(file, spec_, backend, options)) {
  if (weights_.head_table) {
    trimmed_head_ = std::make_unique<TrimmedHead>(weights_.head_tokens, *weights_.head_table, backend_, max_positions_,
                                                  static_cast<float>(spec_.final_soft_cap));
  }
  const std::size_t floats = 2 * spec_.width + 2 * spec_.query_width() + 2 * spec_.kv_width() + 2 * spec_.ffn;
  scratch_ = backend_.allocate(floats * max_rows_ * sizeof(float) + 8 * 64);
  logits_ = backend_.allocate(static_cast<std::size_t>(spec_.vocab) * kMaxTreeNodes * sizeof(float));

  if (backend_.device()) device_rows_ = std::make_unique<DeviceRows>(backend_);

  const auto& divisors = spec_.ropes_long(max_positions_) ? spec_.rope_long_divisors : spec_.rope_divisors;
  rope_ = make_rope(spec_.rope_base, divisors, spec_.rope_magnitude);
  if (spec_.sliding_rope_base > 0) sliding_rope_ = make_rope(spec_.sliding_rope_base, {}, 1);
}

std::unique_ptr<Buffer> Transformer::make_rope(double base, std::span<const double> divisors, double magnitude) const {
  std::vector<float> table(static_cast<std::size_t>(max_positions_) * spec_.rope_dims);
  fill_rope_table(table, max_positions_, spec_.rope_dims, base, divisors, magnitude);
  std::unique_ptr<Buffer> rope = backend_.allocate(table.size() * sizeof(float));
  backend_.write(rope->data(), std::as_bytes(std::span(table)));
  return rope;
}

Transformer::Activations Transformer::activations(int rows) const {
  float* next = reinterpret_cast<float*>(scratch_->data());
  const auto take = [&](int cols) {
    const Rows view{next, rows, cols, cols};
    next += (static_cast<std::size_t>(max_rows_) * cols + 15) / 16 * 16;  // every buffer starts on a cache line
    return view;
  };
  Activations a;
  a.hidden = take(spec_.width);
  a.normed = take(spec_.width);
  a.query = take(spec_.query_width());
  a.key = take(spec_.kv_width());
  a.value = take(spec_.kv_width());
  a.attended = take(spec_.query_width());
  a.gate = take(spec_.ffn);
  a.up = take(spec_.ffn);
  return a;
}

RopeTable Transformer::rope_table(int layer) const {
  Buffer& rope = sliding_rope_ && spec_.slides(layer) ? *sliding_rope_ : *rope_;
  const float* cos = reinterpret_cast<const float*>(rope.data());
  return {cos, cos + static_cast<std::size_t>(max_positions_) * (spec_.rope_dims / 2), spec_.rope_dims,
          spec_.rope_style};
}

void Transformer::check(const Batch& batch, const KvCache& cache) const {
  const int rows = static_cast<int>(batch.tokens.size());
  const int most = std::min(max_rows_, cache.max_rows());
  if (rows < 1 || rows > most) fail(ErrorKind::input, "forward: {} rows, expected 1..{}", rows, most);
  if (cache.size() + rows > cache.capacity()) {
    fail(ErrorKind::input, "forward: {} cached tokens and {} rows exceed the context of {}", cache.size(), rows,
         cache.capacity());
  }
  if (batch.positions.size() != batch.tokens.size() ||
      (!batch.ancestors.empty() && batch.ancestors.size() != batch.tokens.size()) ||
      static_cast<int>(batch.logits_rows.size()) > kMaxTreeNodes ||
      (!batch.ancestors.empty() && rows > kMaxTreeNodes)) {
    fail(ErrorKind::input,
         "forward: {} tokens with {} positions, {} ancestor masks and {} logit rows do not fit together", rows,
         batch.positions.size(), batch.ancestors.size(), batch.logits_rows.size());
  }
  for (const TokenId id : batch.tokens) {
    if (id < 0 || id >= spec_.vocab)
      fail(ErrorKind::input, "forward: token id {} is outside 0..{}", id, spec_.vocab - 1);
  }
  for (const Position p : batch.positions) {
    if (p < 0 || p >= max_positions_)
      fail(ErrorKind::input, "forward: position {} is outside 0..{}", p, max_positions_ - 1);
  }
  for (std::size_t i = 0; i < batch.ancestors.size(); ++i) {
    if (batch.ancestors[i] >> i != 1) {
      fail(ErrorKind::input, "forward: the ancestor mask of row {} must end with the row's own bit, got {:#x}", i,
           batch.ancestors[i]);
    }
  }
  int previous = -1;
  for (const int row : batch.logits_rows) {
    if (row <= previous || row >= rows) {
      fail(ErrorKind::input, "forward: logits of row {} after row {} of {} rows; expected ascending rows", row,
           previous, rows);
    }
    previous = row;
  }
}

Logits Transformer::forward(const Batch& batch, KvCache& cache) {
  check(batch, cache);
  const int rows = static_cast<int>(batch.tokens.size());
  const int base = cache.size();
  const Activations a = activations(rows);
  if (trace_ != nullptr) trace_->stages.clear();

  backend_.embed(a.hidden, *weights_.embedding, batch.tokens);
  if (spec_.embedding_scale != 1) backend_.scale(a.hidden, static_cast<float>(spec_.embedding_scale));
  record("embedding", a.hidden);
  backend_.rms_norm(a.normed, a.hidden, *weights_.layers[0].attention_norm, spec_.norm_epsilon);
  for (int i = 0; i < spec_.layers; ++i) {
    layer(i, cache.layer(i), base, batch, a);
    if (trace_ != nullptr) record("block " + std::to_string(i), a.hidden);
  }
  cache.advance(rows);

  const int wanted = static_cast<int>(batch.logits_rows.size());
  if (wanted == 0) return {{}, spec_.vocab};
  const Rows last = a.normed.slice(0, wanted);
  backend_.gather_rows(last, a.hidden, batch.logits_rows);
  backend_.rms_norm(last, last, *weights_.output_norm, spec_.norm_epsilon);
  record("final norm", last);
  const Weight& head = weights_.head();
  const Rows logits{reinterpret_cast<float*>(logits_->data()), wanted, head.rows, head.rows};
  backend_.matmul(std::array{Projection{logits, &head, nullptr}}, last);
  if (spec_.final_soft_cap > 0) backend_.soft_cap(logits, static_cast<float>(spec_.final_soft_cap));
  record("logits", logits);
  if (trimmed_head_) return trimmed_head_->expand(logits, last);
  if (device_rows_) return device_rows_->hold(logits, batch.picking);
  return {backend_.download(logits), spec_.vocab};
}

void Transformer::norm_heads(Rows rows, const Weight& gain) {
  const Rows heads{rows.data, rows.rows * (rows.cols / gain.cols), gain.cols, gain.cols};
  backend_.rms_norm(heads, heads, gain, spec_.norm_epsilon);
}

void Transformer::record(std::string_view stage, Rows rows) {
  if (trace_ == nullptr) return;
  const std::span<const float> values = backend_.download(rows);
  StageTrace& out = trace_->stages.emplace_back(StageTrace{std::string(stage), rows.rows, rows.cols, {}});
  for (int i = 0; i < rows.rows; ++i) {
    double square = 0;
    for (const float x : values.subspan(static_cast<std::size_t>(i) * rows.cols, static_cast<std::size_t>(rows.cols))) {
      square += static_cast<double>(x) * x;
    }
    out.norms.push_back(std::sqrt(square));
  }
}

// From `normed` to `normed`.
void Transformer::attend(int index, const KvLayer& kv, int base, const Batch& batch, const Activations& a) {
  const LayerWeights& w = weights_.layers[index];
  backend_.matmul(std::array{Projection{a.query, w.query.get(), w.query_bias.get()},
                             Projection{a.key, w.key.get(), w.key_bias.get()},
                             Projection{a.value, w.value.get(), w.value_bias.get()}},
                  a.normed);
  if (w.query_norm) {
    norm_heads(a.query, *w.query_norm);
    norm_heads(a.key, *w.key_norm);
  }
  backend_.rope_store_kv(a.query, a.key, a.value, batch.positions, rope_table(index), kv, base);
  const AttentionParams params{.scale = static_cast<float>(spec_.attention_scale),
                               .window = spec_.window_of(index),
                               .soft_cap = static_cast<float>(spec_.attention_soft_cap)};
  backend_.attention(a.attended, a.query, kv, base, params, {batch.ancestors});
  backend_.matmul(std::array{Projection{a.normed, w.attention_output.get(), nullptr}}, a.attended);
  if (w.post_attention_norm) backend_.rms_norm(a.normed, a.normed, *w.post_attention_norm, spec_.norm_epsilon);
}

// Takes `normed` from the layer before and leaves it for the one after, so that every sum but the last is fused with a
// norm. The last one's norm needs only the rows whose logits are wanted.
void Transformer::layer(int index, const KvLayer& kv, int base, const Batch& batch, const Activations& a) {
  const LayerWeights& w = weights_.layers[index];
  attend(index, kv, base, batch, a);
  backend_.add_rms_norm(a.normed, a.hidden, a.normed, *w.ffn_norm, spec_.norm_epsilon);

  backend_.gated_matmul({a.gate, w.gate.get(), nullptr}, {a.up, w.up.get(), nullptr}, a.normed, spec_.activation);
  backend_.matmul(std::array{Projection{a.normed, w.down.get(), nullptr}}, a.gate);
  if (w.post_ffn_norm) backend_.rms_norm(a.normed, a.normed, *w.post_ffn_norm, spec_.norm_epsilon);
  if (index + 1 == spec_.layers) {
    backend_.add(a.hidden, a.normed);
  } else {
    backend_.add_rms_norm(a.normed, a.hidden, a.normed, *weights_.layers[index + 1].attention_norm, spec_.norm_epsilon);
  }
}

}  // namespace tandem
