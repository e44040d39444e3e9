#include "tests/model/synthetic_model.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <vector>

#include "src/base/error.h"
#include "src/text/vocabulary.h"
#include "tests/model/gguf_builder.h"
#include "tests/model/synthetic_blocks.h"

namespace tandem::test {
namespace {

constexpr int kControlTokens = 2;
constexpr int kStride = 7919;    // from a token to its successor
constexpr double kSpread = 2.5;  // standard deviation of the logits of all but the successor
constexpr double kBiasDeviation = 0.02;
// A block adds this share of the squared deviation of its last matrices to a row's mean square: about 0.36 from
// silu(g) u of normal g and u, the rest from attention.
constexpr double kBlockShare = 0.45;

constexpr SyntheticShape kShapes[] = {{"tiny", 2, 256, 4, 2, 64, 512, 1024, Format::q4_k, Format::q4_k, Format::q6_k,
                                       Format::q6_k, Format::q4_k, Format::q6_k, 0.4},
                                      {"0.5b", 24, 896, 14, 2, 64, 4864, 151936, Format::q5_0, Format::q4_k,
                                       Format::q8_0, Format::q6_k, Format::q5_0, Format::q8_0, 0.19},
                                      {"1.5b", 28, 1536, 12, 2, 128, 8960, 151936, Format::q4_k, Format::q4_k,
                                       Format::q6_k, Format::q6_k, Format::q4_k, Format::q6_k, 0.154}};

int normal_tokens(const SyntheticShape& shape) { return shape.vocabulary - kControlTokens; }

// The mixing function of SplitMix64 (Steele et al. 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

// GPT-2's printable alphabet: bytes that print in Latin-1 stand for themselves, the others for U+0100 onwards.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    const int code = prints ? byte : next++;
    if (code < 0x80) {
      tokens.emplace_back(1, static_cast<char>(code));
    } else {
      tokens.push_back({static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))});
    }
  }
  return tokens;
}

// The bytes, then words of letters: without merges a text is read byte by byte, and any token can be written.
void add_vocabulary(GgufBuilder& out, const SyntheticShape& shape) {
  std::vector<std::string> tokens = byte_tokens();
  while (static_cast<int>(tokens.size()) < normal_tokens(shape)) {
    std::string word;
    for (std::size_t rest = tokens.size(), i = 0; i < 4; ++i, rest /= 26) word += static_cast<char>('a' + rest % 26);
    tokens.push_back(std::move(word));
  }
  std::vector<std::int32_t> types(tokens.size(), static_cast<std::int32_t>(TokenType::normal));
  for (const char* control : {"<|start|>", "<|end|>"}) {
    tokens.emplace_back(control);
    types.push_back(static_cast<std::int32_t>(TokenType::control));
  }
  const auto last = static_cast<std::uint32_t>(tokens.size() - 1);
  out.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "qwen2").set("tokenizer.ggml.tokens", tokens);
  out.set("tokenizer.ggml.token_type", types).set("tokenizer.ggml.merges", std::vector<std::string>{});
  out.set("tokenizer.ggml.bos_token_id", last - 1).set("tokenizer.ggml.eos_token_id", last);
  out.set("tokenizer.ggml.add_bos_token", false);
}

void add_sizes(GgufBuilder& out, const SyntheticShape& shape) {
  const auto set = [&](const std::string& key, int value) {
    out.set("qwen2." + key, static_cast<std::uint32_t>(value));
  };
  out.set("general.architecture", "qwen2").set("general.name", "synthetic " + std::string(shape.name));
  set("block_count", shape.layers);
  set("embedding_length", shape.width);
  set("feed_forward_length", shape.ffn);
  set("attention.head_count", shape.heads);
  set("attention.head_count_kv", shape.kv_heads);
  set("context_length", 32768);
  out.set("qwen2.attention.layer_norm_rms_epsilon", 1e-6f).set("qwen2.rope.freq_base", 1e6f);
}

// The file: what it will hold first, then the bytes, a row at a time.
class Writer {
 public:
  Writer(const SyntheticShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {
    add_sizes(head_, shape);
    add_vocabulary(head_, shape);
    plan_tensors();
  }

  void write(const std::string& path) {
    std::ofstream out(path, std::ios::binary);
    const std::string head = head_.head();
    out.write(head.data(), static_cast<std::streamsize>(head.size()));
    std::uint64_t written = 0;
    for (const Tensor& tensor : tensors_) {
      for (; written < tensor.offset; ++written) out.put('\0');
      written += write_rows(out, tensor);
    }
    if (!out.flush()) fail(ErrorKind::file, "{}: cannot be written", path);
  }

 private:
  using Fill = std::function<void(std::span<std::uint8_t> row, int index, std::mt19937_64& random)>;
  struct Tensor {
    std::string name;
    int rows;
    std::size_t row_bytes;
    std::uint64_t offset;
    Fill fill;
  };

  void plan(const std::string& name, int rows, int cols, Format format, Fill fill) {
    const FormatInfo& info = format_info(format);
    const std::size_t row_bytes = static_cast<std::size_t>(cols / info.block_values) * info.block_bytes;
    const std::uint64_t offset = (end_ + 31) / 32 * 32;
    std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(cols)};
    if (rows > 1) shape.push_back(static_cast<std::uint64_t>(rows));
    head_.tensor_raw(name, shape, static_cast<std::uint32_t>(format), {}, offset);
    tensors_.push_back({name, rows, row_bytes, offset, std::move(fill)});
    end_ = offset + row_bytes * static_cast<std::uint64_t>(rows);
  }

  void plan_matrix(const std::string& name, int rows, int cols, Format format, double scale = 1) {
    const double deviation = scale / std::sqrt(cols);
    plan(name + ".weight", rows, cols, format, [format, deviation](std::span<std::uint8_t> row, int, auto& random) {
      fill_random_blocks(format, row, deviation, random);
    });
  }

  void plan_vector(const std::string& name, int cols, float mean, double deviation) {
    plan(name, 1, cols, Format::f32, [mean, deviation](std::span<std::uint8_t> row, int, auto& random) {
      std::normal_distribution<float> normal(mean, static_cast<float>(deviation));
      for (std::size_t at = 0; at < row.size(); at += sizeof(float)) {
        const float value = deviation > 0 ? normal(random) : mean;
        std::memcpy(row.data() + at, &value, sizeof value);
      }
    });
  }

  // Row `of(index)` of a table of signs, which embedding and head share.
  void plan_signs(const std::string& name, Format format, double magnitude, std::function<int(int)> of) {
    plan(name, shape_.vocabulary, shape_.width, format,
         [this, format, magnitude, of = std::move(of)](std::span<std::uint8_t> row, int index, auto&) {
           std::vector<std::uint64_t> signs(static_cast<std::size_t>(shape_.width + 63) / 64);
           const auto base = static_cast<std::uint64_t>(of(index)) * signs.size();
           for (std::size_t i = 0; i < signs.size(); ++i)
             signs[i] = mixed(seed_ + (base + i + 1) * 0x9E3779B97F4A7C15u);
           fill_sign_blocks(format, row, magnitude, signs);
         });
  }

  void plan_tensors() {
    plan_signs("token_embd.weight", shape_.embedding, 1, [](int token) { return token; });
    for (int layer = 0; layer < shape_.layers; ++layer)
      plan_layer("blk." + std::to_string(layer) + ".", layer % 2 == 0);
    plan_vector("output_norm.weight", shape_.width, 1, 0);
    const int normal = normal_tokens(shape_);
    plan_signs("output.weight", shape_.head, kSpread / std::sqrt(shape_.width),
               [normal](int token) { return token < normal ? (token - kStride % normal + normal) % normal : token; });
  }

  void plan_layer(const std::string& block, bool fine) {
    const int query = shape_.heads * shape_.head_dim, kv = shape_.kv_heads * shape_.head_dim;
    const double noise = std::sqrt((1 / (shape_.share * shape_.share) - 1) / (kBlockShare * shape_.layers));
    plan_vector(block + "attn_norm.weight", shape_.width, 1, 0);
    plan_matrix(block + "attn_q", query, shape_.width, shape_.matrix);
    plan_vector(block + "attn_q.bias", query, 0, kBiasDeviation);
    plan_matrix(block + "attn_k", kv, shape_.width, shape_.matrix);
    plan_vector(block + "attn_k.bias", kv, 0, kBiasDeviation);
    plan_matrix(block + "attn_v", kv, shape_.width, fine ? shape_.fine_value : shape_.matrix);
    plan_vector(block + "attn_v.bias", kv, 0, kBiasDeviation);
    plan_matrix(block + "attn_output", shape_.width, query, shape_.matrix, noise);
    plan_vector(block + "ffn_norm.weight", shape_.width, 1, 0);
    plan_matrix(block + "ffn_gate", shape_.ffn, shape_.width, shape_.matrix);
    plan_matrix(block + "ffn_up", shape_.ffn, shape_.width, shape_.matrix);
    plan_matrix(block + "ffn_down", shape_.width, shape_.ffn, fine ? shape_.fine_down : shape_.down, noise);
  }

  std::uint64_t write_rows(std::ofstream& out, const Tensor& tensor) const {
    std::seed_seq sequence(tensor.name.begin(), tensor.name.end());
    std::uint32_t words[2];
    sequence.generate(words, words + 2);
    std::mt19937_64 random((std::uint64_t{words[0]} << 32 | words[1]) ^ mixed(seed_ + 1));
    std::vector<std::uint8_t> row(tensor.row_bytes);
    for (int index = 0; index < tensor.rows; ++index) {
      tensor.fill(row, index, random);
      out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size()));
    }
    return tensor.row_bytes * static_cast<std::uint64_t>(tensor.rows);
  }

  const SyntheticShape& shape_;
  std::uint64_t seed_;
  GgufBuilder head_;
  std::vector<Tensor> tensors_;
  std::uint64_t end_ = 0;
};

}  // namespace

std::span<const SyntheticShape> synthetic_shapes() { return kShapes; }

const SyntheticShape& synthetic_shape(std::string_view name) {
  const auto found = std::ranges::find(kShapes, name, &SyntheticShape::name);
  if (found == std::end(kShapes)) fail(ErrorKind::usage, "synthetic model: expected tiny, 0.5b or 1.5b, got {}", name);
  return *found;
}

TokenId synthetic_successor(const SyntheticShape& shape, TokenId token) {
  return (token + kStride) % normal_tokens(shape);
}

void write_synthetic_model(const SyntheticShape& shape, std::uint64_t seed, const std::string& path) {
  Writer(shape, seed).write(path);
}

}  // namespace tandem::test
