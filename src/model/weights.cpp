#include "src/model/weights.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>

#include "src/base/error.h"

namespace tandem {
namespace {

double bits_a_value(Format format) {
  const FormatInfo& info = format_info(format);
  return 8.0 * info.block_bytes / info.block_values;
}

class Loader {
 public:
  Loader(const GgufFile& file, Backend& backend, std::optional<Format> quantize)
      : file_(file), backend_(backend), quantize_(quantize) {
    if (quantize && *quantize != Format::q4_0 && *quantize != Format::q8_0) {
      fail(ErrorKind::config, "quantize: expected Q4_0 or Q8_0, got {}", format_info(*quantize).name);
    }
  }

  std::unique_ptr<Weight> matrix(const std::string& name, int rows, int columns, WeightUse use = WeightUse::matmul) {
    return load(take(name, rows, columns), use);
  }
  // A tensor that holds several matrices one after the other, of so many rows each.
  template <std::size_t N>
  std::array<std::unique_ptr<Weight>, N> matrices(const std::string& name, const std::array<int, N>& rows,
                                                  int columns) {
    const GgufTensor& all = take(name, std::accumulate(rows.begin(), rows.end(), 0), columns);
    const std::size_t row_bytes = all.data.size() / static_cast<std::size_t>(all.rows());
    std::array<std::unique_ptr<Weight>, N> out;
    for (std::size_t i = 0, first = 0; i < N; first += static_cast<std::size_t>(rows[i++])) {
      const std::size_t bytes = row_bytes * static_cast<std::size_t>(rows[i]);
      out[i] = load({all.name, all.format, {columns, rows[i]}, all.data.subspan(row_bytes * first, bytes)},
                    WeightUse::matmul);
    }
    return out;
  }
  std::unique_ptr<Weight> vector(const std::string& name, int size) { return matrix(name, 1, size, WeightUse::vector); }

  // A tensor that no part of the pass asked for would change its results: the model is of another kind than it says.
  void require_all_taken(const std::string& architecture) const {
    constexpr std::array in_the_spec{kRopeFactors, kRopeLongFactors, kRopeShortFactors};
    for (const GgufTensor& tensor : file_.tensors()) {
      if (taken_.contains(tensor.name) || std::ranges::find(in_the_spec, tensor.name) != in_the_spec.end()) continue;
      fail(ErrorKind::model, "{}: tensor {}: not a part of {} as this version runs it", file_.name(), tensor.name,
           architecture);
    }
  }

  // Whether a matrix is larger than the format wanted and can be stored in it.
  bool quantizes(const GgufTensor& tensor) const {
    return quantize_ && bits_a_value(tensor.format) > bits_a_value(*quantize_) &&
           tensor.columns() % format_info(*quantize_).block_values == 0;
  }

  // Of all tensors, in the format wanted where that is smaller.
  std::size_t bytes_to_load() const {
    std::size_t bytes = 0;
    for (const GgufTensor& tensor : file_.tensors()) {
      bytes += quantizes(tensor) ? encoded_bytes(*quantize_, static_cast<std::size_t>(tensor.rows() * tensor.columns()))
                                 : tensor.data.size();
    }
    return bytes;
  }

  // These rows of a matrix (all of them when there are none), in the format wanted where that is smaller.
  std::unique_ptr<Weight> converted(const GgufTensor& tensor, std::span<const TokenId> kept) {
    const int rows = kept.empty() ? static_cast<int>(tensor.rows()) : static_cast<int>(kept.size());
    const Format format = quantizes(tensor) ? *quantize_ : tensor.format;
    const std::size_t bytes = encoded_bytes(format, static_cast<std::size_t>(tensor.columns())) * rows;
    if (data_.size() < bytes) data_.resize(bytes);
    const std::span<std::byte> data = std::span(data_).first(bytes);
    convert_rows(tensor, kept, format, data);
    file_.mapping().release(tensor.data);
    return backend_.load({format, rows, static_cast<int>(tensor.columns()), data, nullptr}, WeightUse::matmul);
  }

 private:
  const GgufTensor& take(const std::string& name, int rows, int columns) {
    taken_.insert(name);
    return file_.require(name, rows, columns);
  }

  std::unique_ptr<Weight> load(const GgufTensor& tensor, WeightUse use) {
    if (use == WeightUse::matmul && quantizes(tensor)) return converted(tensor, {});
    const int rows = static_cast<int>(tensor.rows()), columns = static_cast<int>(tensor.columns());
    return backend_.load({tensor.format, rows, columns, tensor.data, &file_.mapping()}, use);
  }

  // A row is converted alone, so its bytes do not depend on how the rows are split over the threads.
  void convert_rows(const GgufTensor& tensor, std::span<const TokenId> kept, Format format, std::span<std::byte> out) {
    const auto columns = static_cast<std::size_t>(tensor.columns());
    const std::size_t source_bytes = encoded_bytes(tensor.format, columns), row_bytes = encoded_bytes(format, columns);
    const int rows = static_cast<int>(out.size() / row_bytes);
    ThreadPool& pool = backend_.pool();
    if (format != tensor.format) values_.resize(std::max(values_.size(), columns * pool.threads()));
    pool.run([&](int thread) {
      const std::span<float> values = std::span(values_).subspan(columns * thread);
      const auto [first, last] = pool.share(rows, thread);
      for (int i = first; i < last; ++i) {
        const auto from = static_cast<std::size_t>(kept.empty() ? i : kept[static_cast<std::size_t>(i)]);
        const std::span<const std::byte> source = tensor.data.subspan(from * source_bytes, source_bytes);
        const std::span<std::byte> row = out.subspan(static_cast<std::size_t>(i) * row_bytes, row_bytes);
        if (format == tensor.format) {
          std::ranges::copy(source, row.begin());
        } else {
          decode_blocks(tensor.format, source, values.first(columns));
          encode_blocks(format, values.first(columns), row);
        }
      }
    });
  }

  const GgufFile& file_;
  Backend& backend_;
  std::optional<Format> quantize_;
  std::vector<std::byte> data_;  // of the matrix at hand, as large as the largest so far
  std::vector<float> values_;    // a row for each thread
  std::set<std::string, std::less<>> taken_;
};

LayerWeights load_layer(Loader& load, const ModelSpec& spec, int layer) {
  const std::string prefix = fmt::format("blk.{}.", layer);
  LayerWeights w;
  w.attention_norm = load.vector(prefix + "attn_norm.weight", spec.width);
  if (spec.fused_qkv) {
    auto [query, key, value] = load.matrices(
        prefix + "attn_qkv.weight", std::array{spec.query_width(), spec.kv_width(), spec.kv_width()}, spec.width);
    w.query = std::move(query), w.key = std::move(key), w.value = std::move(value);
  } else {
    w.query = load.matrix(prefix + "attn_q.weight", spec.query_width(), spec.width);
    w.key = load.matrix(prefix + "attn_k.weight", spec.kv_width(), spec.width);
    w.value = load.matrix(prefix + "attn_v.weight", spec.kv_width(), spec.width);
  }
  if (spec.qkv_bias) {
    w.query_bias = load.vector(prefix + "attn_q.bias", spec.query_width());
    w.key_bias = load.vector(prefix + "attn_k.bias", spec.kv_width());
    w.value_bias = load.vector(prefix + "attn_v.bias", spec.kv_width());
  }
  if (spec.qk_norm) {
    w.query_norm = load.vector(prefix + "attn_q_norm.weight", spec.head_dim);
    w.key_norm = load.vector(prefix + "attn_k_norm.weight", spec.head_dim);
  }
  w.attention_output = load.matrix(prefix + "attn_output.weight", spec.width, spec.query_width());
  w.ffn_norm = load.vector(prefix + "ffn_norm.weight", spec.width);
  if (spec.fused_gate_up) {
    auto [gate, up] = load.matrices(prefix + "ffn_up.weight", std::array{spec.ffn, spec.ffn}, spec.width);
    w.gate = std::move(gate), w.up = std::move(up);
  } else {
    w.gate = load.matrix(prefix + "ffn_gate.weight", spec.ffn, spec.width);
    w.up = load.matrix(prefix + "ffn_up.weight", spec.ffn, spec.width);
  }
  w.down = load.matrix(prefix + "ffn_down.weight", spec.width, spec.ffn);
  if (spec.post_norms) {
    w.post_attention_norm = load.vector(prefix + "post_attention_norm.weight", spec.width);
    w.post_ffn_norm = load.vector(prefix + "post_ffw_norm.weight", spec.width);
  }
  return w;
}

std::size_t bytes_of(const std::unique_ptr<Weight>& weight) { return weight ? weight->bytes : 0; }

}  // namespace

std::size_t Weights::bytes_per_pass() const {
  std::size_t bytes = bytes_of(output_norm) + head().bytes;
  for (const LayerWeights& l : layers) {
    for (const auto* w : {&l.attention_norm, &l.query, &l.key, &l.value, &l.query_bias, &l.key_bias, &l.value_bias,
                          &l.query_norm, &l.key_norm, &l.attention_output, &l.post_attention_norm, &l.ffn_norm, &l.gate,
                          &l.up, &l.down, &l.post_ffn_norm}) {
      bytes += bytes_of(*w);
    }
  }
  return bytes;
}

double Weights::multiplies(int rows, int logits_rows) const {
  const auto size = [](const Weight& w) { return static_cast<double>(w.rows) * w.cols; };
  double layer_macs = 0;
  for (const LayerWeights& l : layers) {
    for (const auto* w : {&l.query, &l.key, &l.value, &l.attention_output, &l.gate, &l.up, &l.down}) {
      layer_macs += size(**w);
    }
  }
  return rows * layer_macs + logits_rows * size(head());
}

Weights load_weights(const GgufFile& file, const ModelSpec& spec, Backend& backend, const WeightOptions& options) {
  Loader load(file, backend, options.quantize);
  backend.require_room(load.bytes_to_load(), fmt::format("the weights of {}", file.name()));
  Weights weights;
  const bool tied = file.find(spec.output) == nullptr;
  const std::string& head = tied ? spec.embedding : spec.output;
  const GgufTensor& head_tensor = file.require(head, spec.vocab, spec.width);
  const bool trims = !options.head_tokens.empty();
  const bool shared = tied && !trims && !load.quantizes(head_tensor);
  weights.embedding = load.matrix(spec.embedding, spec.vocab, spec.width, shared ? WeightUse::both : WeightUse::lookup);
  for (int layer = 0; layer < spec.layers; ++layer) weights.layers.push_back(load_layer(load, spec, layer));
  weights.output_norm = load.vector(spec.output_norm, spec.width);
  if (trims) {
    weights.head_tokens = options.head_tokens;
    weights.head_table = load.matrix(head, spec.vocab, spec.width, WeightUse::lookup);
    weights.output = load.converted(head_tensor, options.head_tokens);
  } else if (!shared) {
    weights.output = load.matrix(head, spec.vocab, spec.width);
  }
  load.require_all_taken(spec.architecture);
  return weights;
}

}  // namespace tandem
