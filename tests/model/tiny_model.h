// A random llama, qwen, phi or gemma model small enough for whole-model tests in milliseconds, with a byte-level
// vocabulary.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/registry.h"
#include "src/arch/registry.h"
#include "src/base/half.h"
#include "src/base/thread_pool.h"
#include "src/base/token_tree.h"
#include "src/model/gguf.h"
#include "src/model/transformer.h"
#include "src/text/vocabulary.h"
#include "tests/base/temp_dir.h"
#include "tests/model/gguf_builder.h"

namespace tandem::test {

// 96 single bytes (printable ASCII, space, newline), a few merged tokens, three control tokens; no BOS is added.
inline Vocabulary tiny_vocabulary() {
  Vocabulary v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  const auto add = [&](std::string token, TokenType type) {
    v.tokens.push_back(std::move(token));
    v.types.push_back(type);
  };
  for (char c = '!'; c <= '~'; ++c) add(std::string(1, c), TokenType::normal);
  add("\u0120", TokenType::normal);  // space
  add("\u010A", TokenType::normal);  // newline
  v.merges = {"t h", "h e", "i n", "e r", "th e", "\u0120 t", "\u0120 a", "\u0120 the", "a n"};
  for (const std::string& merge : v.merges) {
    std::string token = merge;
    token.erase(token.find(' '), 1);
    add(std::move(token), TokenType::normal);
  }
  v.bos = v.size();
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) add(name, TokenType::control);
  v.eos = v.size() - 1;
  return v;
}

// The same single bytes in another order, other merges, other places of the control tokens.
inline Vocabulary other_tiny_vocabulary() {
  Vocabulary v;
  v.model = "gpt2";
  v.pre = "smollm";
  const auto add = [&](std::string token, TokenType type) {
    v.tokens.push_back(std::move(token));
    v.types.push_back(type);
  };
  add("<|im_end|>", TokenType::control);
  v.eos = 0;
  add("\u010A", TokenType::normal);  // newline
  add("\u0120", TokenType::normal);  // space
  for (char c = '~'; c >= '!'; --c) add(std::string(1, c), TokenType::normal);
  v.merges = {"h e", "t he", "e r", "o n", "\u0120 \u0120"};
  for (const std::string& merge : v.merges) {
    std::string token = merge;
    token.erase(token.find(' '), 1);
    add(std::move(token), TokenType::normal);
  }
  v.bos = v.size();
  add("<|endoftext|>", TokenType::control);
  return v;
}

struct TinyOptions {
  std::string architecture = "qwen2";  // or llama, qwen3, phi3, gemma2, gemma3
  int layers = 2;
  int width = 64;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 16;
  int ffn = 96;
  int rows = 112;  // of the embedding; those past the vocabulary are padding
  int context = 512;
  int window = 16;              // phi3: of all layers; gemma2, gemma3: of the sliding layers,
  int sliding_period = 2;       // all but the last of so many
  Format format = Format::f32;  // of all matrices: f32, q8_0, q4_k or q6_k; the last two need columns of 256
  bool tied = true;
  std::uint64_t seed = 1;
  double noise = 0;           // mixes this much of a second random model in (f32 and q8_0): a draft that often agrees
  std::string chat_template;  // empty = none
  Vocabulary vocabulary = tiny_vocabulary();
  std::function<void(GgufBuilder& file)> more;                         // may add keys and tensors
  std::function<void(std::string_view name, std::string& data)> edit;  // may change a tensor's bytes before they go in
};

// Sizes for the formats with blocks of 256.
inline TinyOptions wide_options(Format format) {
  TinyOptions options;
  options.width = options.ffn = 256;
  options.head_dim = 64;
  options.format = format;
  return options;
}

// Random numbers that depend on the seed and the tensor's name alone, so that models of one seed share their weights.
class TinyWeights {
 public:
  explicit TinyWeights(const TinyOptions& options) : options_(options) {}

  // `rows` x `cols` values around `mean`; a vector has rows 1 and is always f32.
  void add(GgufBuilder& out, const std::string& name, int rows, int cols, double mean, double deviation) const {
    const bool vector = rows == 1;
    const Format format = vector ? Format::f32 : options_.format;
    std::string data;
    if (format == Format::q4_k || format == Format::q6_k) {
      data = random_blocks(name, format, rows * cols / 256, deviation);
    } else {
      data = encode(format, values(name, rows * cols, mean, deviation));
    }
    if (options_.edit) options_.edit(name, data);
    std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(cols)};
    if (!vector) shape.push_back(static_cast<std::uint64_t>(rows));
    out.tensor(name, shape, format, data);
  }

 private:
  static std::mt19937_64 random(const std::string& name, std::uint64_t seed) {
    std::seed_seq sequence(name.begin(), name.end());
    std::vector<std::uint32_t> words(2);
    sequence.generate(words.begin(), words.end());
    return std::mt19937_64((std::uint64_t{words[0]} << 32 | words[1]) ^ seed * 0x9E3779B97F4A7C15u);
  }

  std::vector<float> values(const std::string& name, int count, double mean, double deviation) const {
    std::mt19937_64 base = random(name, options_.seed), other = random(name, ~options_.seed);
    std::normal_distribution<double> normal;
    std::vector<double> sum(count);
    for (double& x : sum) x = normal(base);
    normal.reset();
    for (double& x : sum) x += options_.noise * normal(other);
    std::vector<float> out(count);
    const double scale = deviation / std::sqrt(1 + options_.noise * options_.noise);
    std::transform(sum.begin(), sum.end(), out.begin(), [&](double x) { return static_cast<float>(mean + scale * x); });
    return out;
  }

  static std::string encode(Format format, const std::vector<float>& x) {
    if (format == Format::f32) return {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)};
    std::string out;
    for (std::size_t block = 0; block < x.size(); block += 32) {
      float largest = 0;
      for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[block + i]));
      append_half(out, largest / 127);
      for (int i = 0; i < 32; ++i) out.push_back(static_cast<char>(std::lround(x[block + i] / largest * 127)));
    }
    return out;
  }

  // Any bytes are a valid block; only its scales decide the size of the values, which are symmetric around 0.
  std::string random_blocks(const std::string& name, Format format, int blocks, double deviation) const {
    std::mt19937_64 bytes = random(name, options_.seed);
    std::string out;
    const auto fill = [&](int count) {
      for (int i = 0; i < count; ++i) out.push_back(static_cast<char>(bytes() & 0xff));
    };
    for (int block = 0; block < blocks; ++block) {
      if (format == Format::q4_k) {  // scale x nibble - minimum: deviation 257 of the block's scale
        append_half(out, static_cast<float>(deviation / 257));
        append_half(out, static_cast<float>(7.5 * deviation / 257));
        fill(140);
      } else {  // int8 scale x six bits: deviation 1370 of the block's scale
        fill(208);
        append_half(out, static_cast<float>(deviation / 1370));
      }
    }
    return out;
  }

  static void append_half(std::string& out, float value) {
    const std::uint16_t half = float_to_half(value);
    out.append(reinterpret_cast<const char*>(&half), sizeof half);
  }

  const TinyOptions& options_;
};

inline void add_tiny_vocabulary(GgufBuilder& out, const TinyOptions& o) {
  const Vocabulary& v = o.vocabulary;
  std::vector<std::int32_t> types;
  for (const TokenType type : v.types) types.push_back(static_cast<std::int32_t>(type));
  out.set("tokenizer.ggml.model", v.model).set("tokenizer.ggml.pre", v.pre).set("tokenizer.ggml.tokens", v.tokens);
  out.set("tokenizer.ggml.token_type", types).set("tokenizer.ggml.merges", v.merges);
  if (!v.scores.empty()) out.set("tokenizer.ggml.scores", v.scores);
  out.set("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*v.bos));
  out.set("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(*v.eos));
  out.set("tokenizer.ggml.add_bos_token", v.add_bos);
  if (v.eot) out.set("tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(*v.eot));
  if (v.eom) out.set("tokenizer.ggml.eom_token_id", static_cast<std::uint32_t>(*v.eom));
  if (!o.chat_template.empty()) out.set("tokenizer.chat_template", o.chat_template);
}

inline GgufBuilder tiny_gguf(const TinyOptions& o) {
  GgufBuilder out;
  const std::string prefix = o.architecture + ".";
  out.set("general.architecture", o.architecture).set("general.name", "tiny");
  const auto set = [&](const std::string& key, int value) { out.set(prefix + key, static_cast<std::uint32_t>(value)); };
  set("block_count", o.layers);
  set("embedding_length", o.width);
  set("feed_forward_length", o.ffn);
  set("attention.head_count", o.heads);
  set("attention.head_count_kv", o.kv_heads);
  set("attention.key_length", o.head_dim);
  set("attention.value_length", o.head_dim);
  set("context_length", o.context);
  out.set(prefix + "attention.layer_norm_rms_epsilon", 1e-6f).set(prefix + "rope.freq_base", 10000.0f);
  const bool gemma = o.architecture.starts_with("gemma");
  if (gemma) {
    set("attention.sliding_window", o.window);
    set("attention.sliding_window_pattern", o.sliding_period);
  }
  if (o.architecture == "phi3") {
    set("rope.dimension_count", o.head_dim / 4 * 2);
    set("attention.sliding_window", o.window);
  }
  add_tiny_vocabulary(out, o);
  if (o.more) o.more(out);

  const TinyWeights weights(o);
  const auto matrix = [&](const std::string& name, int rows, int cols) {
    weights.add(out, name + ".weight", rows, cols, 0, 1 / std::sqrt(cols));
  };
  const int query = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
  weights.add(out, "token_embd.weight", o.rows, o.width, 0, 0.4);
  for (int layer = 0; layer < o.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    weights.add(out, block + "attn_norm.weight", 1, o.width, 1, 0.1);
    weights.add(out, block + "ffn_norm.weight", 1, o.width, 1, 0.1);
    if (gemma) {
      weights.add(out, block + "post_attention_norm.weight", 1, o.width, 1, 0.1);
      weights.add(out, block + "post_ffw_norm.weight", 1, o.width, 1, 0.1);
    }
    if (o.architecture == "phi3") {
      matrix(block + "attn_qkv", query + 2 * kv, o.width);
      matrix(block + "ffn_up", 2 * o.ffn, o.width);
    } else {
      matrix(block + "attn_q", query, o.width);
      matrix(block + "attn_k", kv, o.width);
      matrix(block + "attn_v", kv, o.width);
      matrix(block + "ffn_gate", o.ffn, o.width);
      matrix(block + "ffn_up", o.ffn, o.width);
    }
    matrix(block + "attn_output", o.width, query);
    matrix(block + "ffn_down", o.width, o.ffn);
    if (o.architecture == "qwen3" || o.architecture == "gemma3") {
      weights.add(out, block + "attn_q_norm.weight", 1, o.head_dim, 1, 0.1);
      weights.add(out, block + "attn_k_norm.weight", 1, o.head_dim, 1, 0.1);
    }
    if (o.architecture != "qwen2") continue;
    for (const char* part : {"attn_q.bias", "attn_k.bias", "attn_v.bias"}) {
      weights.add(out, block + part, 1, part[5] == 'q' ? query : kv, 0, 0.2);
    }
  }
  weights.add(out, "output_norm.weight", 1, o.width, 1, 0.1);
  if (!o.tied) weights.add(out, "output.weight", o.rows, o.width, 0, 0.4);
  return out;
}

// Writes the model into the folder; returns its path.
inline std::string write_tiny_model(const TempDir& folder, const std::string& name, const TinyOptions& options) {
  return folder.file(name, tiny_gguf(options).bytes());
}

// A loaded tiny model with everything that it needs.
struct TinyModel {
  explicit TinyModel(const TinyOptions& options = {}, std::string_view backend_name = "reference", int threads = 1,
                     int max_rows = 128, const WeightOptions& weights = {})
      : file(GgufFile::open(write_tiny_model(folder, "tiny.gguf", options))),
        pool(threads),
        backend(make_backend(backend_name, pool)),
        model(read_model_spec(*file), *file, *backend, max_rows, options.context, weights) {}

  TempDir folder;
  std::unique_ptr<GgufFile> file;
  ThreadPool pool;
  std::unique_ptr<Backend> backend;
  Transformer model;
};

// The CUDA backends of this build.
inline std::vector<std::string> gpu_backends() {
  std::vector<std::string> names;
  for (const std::string_view kind : backend_kinds()) {
    if (kind.starts_with("cuda")) names.emplace_back(kind);
  }
  return names;
}

// Random token ids of the tiny vocabulary, control tokens left out.
inline std::vector<TokenId> random_tokens(std::mt19937_64& random, int count) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 105);
  return tokens;
}

// Runs tokens causally from the cache's end in chunks; returns the logits of the last token.
inline std::vector<float> feed(LanguageModel& model, KvCache& cache, std::span<const TokenId> tokens, int chunk = 64) {
  std::vector<float> out;
  for (std::size_t done = 0; done < tokens.size();) {
    const std::span<const TokenId> rows = tokens.subspan(done, std::min<std::size_t>(chunk, tokens.size() - done));
    std::vector<Position> positions(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) positions[i] = cache.size() + static_cast<int>(i);
    const std::vector<int> last{static_cast<int>(rows.size()) - 1};
    const Logits logits = model.forward({rows, positions, {}, last}, cache);
    out.assign(logits.row(0).begin(), logits.row(0).end());
    done += rows.size();
  }
  return out;
}

// A pass over all nodes of a tree; logits of every node.
inline Logits feed(LanguageModel& model, KvCache& cache, const TokenTree& tree) {
  std::vector<TokenId> tokens;
  std::vector<Position> positions;
  std::vector<std::uint64_t> ancestors;
  std::vector<int> rows;
  for (int node = 0; node < tree.size(); ++node) {
    tokens.push_back(tree.token(node));
    positions.push_back(cache.size() + tree.depth(node));
    ancestors.push_back(tree.ancestors(node));
    rows.push_back(node);
  }
  return model.forward({tokens, positions, ancestors, rows}, cache);
}

// A random tree below a pending token; siblings differ in token. Few parents make it deep, many make it wide.
inline TokenTree random_tree(std::mt19937_64& random, TokenId pending, int nodes) {
  TokenTree tree(pending);
  while (tree.size() < nodes) {
    const int span = 1 + static_cast<int>(random() % tree.size());
    const int parent = tree.size() - span;
    const TokenId token = static_cast<TokenId>(random() % 105);
    if (tree.child(parent, token) < 0) tree.add(parent, token, ChildKind::deterministic, DraftSource::other);
  }
  return tree;
}

// Node 0 to `node`.
inline std::vector<int> path_to(const TokenTree& tree, int node) {
  std::vector<int> path;
  for (; node >= 0; node = tree.parent(node)) path.push_back(node);
  std::reverse(path.begin(), path.end());
  return path;
}

inline std::vector<TokenId> tokens_of(const TokenTree& tree, const std::vector<int>& path) {
  std::vector<TokenId> tokens;
  for (const int node : path) tokens.push_back(tree.token(node));
  return tokens;
}

}  // namespace tandem::test
