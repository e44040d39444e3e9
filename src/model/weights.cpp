#include "src/model/weights.h"

#include <string>

#include "src/base/error.h"

namespace tandem {
namespace {

class Loader {
 public:
  Loader(const GgufFile& file, Backend& backend) : file_(file), backend_(backend) {}

  std::unique_ptr<Weight> matrix(const std::string& name, int rows, int columns, WeightUse use = WeightUse::matmul) {
    const GgufTensor& tensor = file_.require(name, rows, columns);
    return backend_.load({tensor.format, rows, columns, tensor.data, &file_.mapping()}, use);
  }
  std::unique_ptr<Weight> vector(const std::string& name, int size) { return matrix(name, 1, size, WeightUse::vector); }

 private:
  const GgufFile& file_;
  Backend& backend_;
};

LayerWeights load_layer(Loader& load, const ModelSpec& spec, int layer) {
  const std::string prefix = fmt::format("blk.{}.", layer);
  LayerWeights w;
  w.attention_norm = load.vector(prefix + "attn_norm.weight", spec.width);
  w.query = load.matrix(prefix + "attn_q.weight", spec.query_width(), spec.width);
  w.key = load.matrix(prefix + "attn_k.weight", spec.kv_width(), spec.width);
  w.value = load.matrix(prefix + "attn_v.weight", spec.kv_width(), spec.width);
  if (spec.qkv_bias) {
    w.query_bias = load.vector(prefix + "attn_q.bias", spec.query_width());
    w.key_bias = load.vector(prefix + "attn_k.bias", spec.kv_width());
    w.value_bias = load.vector(prefix + "attn_v.bias", spec.kv_width());
  }
  w.attention_output = load.matrix(prefix + "attn_output.weight", spec.width, spec.query_width());
  w.ffn_norm = load.vector(prefix + "ffn_norm.weight", spec.width);
  w.gate = load.matrix(prefix + "ffn_gate.weight", spec.ffn, spec.width);
  w.up = load.matrix(prefix + "ffn_up.weight", spec.ffn, spec.width);
  w.down = load.matrix(prefix + "ffn_down.weight", spec.width, spec.ffn);
  return w;
}

std::size_t bytes_of(const std::unique_ptr<Weight>& weight) { return weight ? weight->bytes : 0; }

}  // namespace

std::size_t Weights::bytes_per_pass() const {
  std::size_t bytes = bytes_of(output_norm) + head().bytes;
  for (const LayerWeights& l : layers) {
    for (const auto* w : {&l.attention_norm, &l.query, &l.key, &l.value, &l.query_bias, &l.key_bias, &l.value_bias,
                          &l.attention_output, &l.ffn_norm, &l.gate, &l.up, &l.down}) {
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

Weights load_weights(const GgufFile& file, const ModelSpec& spec, Backend& backend) {
  Loader load(file, backend);
  Weights weights;
  const bool tied = file.find(spec.output) == nullptr;
  weights.embedding = load.matrix(spec.embedding, spec.vocab, spec.width, tied ? WeightUse::both : WeightUse::lookup);
  for (int layer = 0; layer < spec.layers; ++layer) weights.layers.push_back(load_layer(load, spec, layer));
  weights.output_norm = load.vector(spec.output_norm, spec.width);
  if (!tied) weights.output = load.matrix(spec.output, spec.vocab, spec.width);
  return weights;
}

}  // namespace tandem
