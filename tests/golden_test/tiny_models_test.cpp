// Tiny random models of every architecture and kind of scaled rope, against what transformers computes for them
// (tests/golden/make_tiny.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/base/error.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;

// transformers computes angles in float32, so one at position 95 is off by up to 96 * 2^-23 rad. A score of about 10
// changes by ten times that, in each of three layers, and a log-probability by no more than the scores together. Our
// own float32 activations, about 10 a layer with 2^-24 each, are less.
constexpr double kTolerance = 96.0 / (1 << 23) * 10 * 3;

Json row_named(const std::string& name) {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/golden/tiny.jsonl");
  for (std::string line; std::getline(in, line);) {
    Json row = Json::parse(line);
    if (row["name"] == name) return row;
  }
  throw std::runtime_error("no row " + name + " in tiny.jsonl");
}

// Uniform in [-1, 1) in steps of 2^-23: splitmix64 of the tensor's name and the index.
std::vector<float> noise(const std::string& name, std::size_t count, double mean, double spread) {
  std::uint64_t seed = 0xCBF29CE484222325u;
  for (const unsigned char byte : name) seed = (seed ^ byte) * 0x100000001B3u;
  std::vector<float> out(count);
  for (float& value : out) {
    seed += 0x9E3779B97F4A7C15u;
    std::uint64_t x = seed;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    value = static_cast<float>(mean + spread * (static_cast<double>(x >> 40) / (1 << 23) - 1));
  }
  return out;
}

void add_tensor(GgufBuilder& out, const Json& spec, Format format) {
  const std::string name = spec[0];
  if (spec[1].is_array()) {
    const std::vector<float> values = spec[1];
    out.tensor_f32(name, {values.size()}, values);
    return;
  }
  const std::uint64_t rows = spec[1], cols = spec[2];
  const std::vector<float> values = noise(name, rows * cols, spec[3], spec[4]);
  if (rows == 1) {
    out.tensor_f32(name, {cols}, values);
  } else if (format == Format::f32) {
    out.tensor_f32(name, {cols, rows}, values);
  } else {
    std::string data(encoded_bytes(format, values.size()), '\0');
    encode_blocks(format, values, std::as_writable_bytes(std::span(data)));
    out.tensor(name, {cols, rows}, format, data);
  }
}

GgufBuilder file_of(const Json& row, Format format) {
  GgufBuilder out;
  out.set("general.architecture", row["architecture"].get<std::string>());
  for (const auto& [key, value] : row["metadata"].items()) {
    if (value.is_string()) {
      out.set(key, value.get<std::string>());
    } else if (value.is_number_integer()) {
      out.set(key, value.get<std::uint32_t>());
    } else {
      out.set(key, value.get<float>());
    }
  }
  for (const Json& spec : row["tensors"]) add_tensor(out, spec, format);
  return out;
}

using AllLogits = std::vector<std::vector<float>>;  // [ids, vocabulary]

AllLogits logits_of(const Json& row, std::string_view backend_name, Format format = Format::f32,
                    std::size_t chunk = 29) {
  TempDir folder;
  const auto file = GgufFile::open(folder.file("tiny.gguf", file_of(row, format).bytes()));
  ThreadPool pool(1);
  const auto backend = make_backend(backend_name, pool);
  const std::vector<TokenId> ids = row["ids"];
  const int count = static_cast<int>(ids.size());
  Transformer model(read_model_spec(*file), *file, *backend, kMaxTreeNodes, count);
  KvCache cache = model.make_cache(count, KvType::f32);
  AllLogits out;
  for (std::size_t done = 0; done < ids.size();) {
    const std::span<const TokenId> tokens = std::span(ids).subspan(done, std::min(chunk, ids.size() - done));
    std::vector<Position> positions(tokens.size());
    std::vector<int> rows(tokens.size());
    std::iota(positions.begin(), positions.end(), static_cast<int>(done));
    std::iota(rows.begin(), rows.end(), 0);
    const Logits logits = model.forward({tokens, positions, {}, rows}, cache);
    for (const int i : rows) out.emplace_back(logits.row(i).begin(), logits.row(i).end());
    done += tokens.size();
  }
  return out;
}

std::vector<double> nll_of(const Json& row, const AllLogits& logits) {
  std::vector<double> out;
  for (std::size_t i = 0; i + 1 < logits.size(); ++i) {
    double sum = 0;
    for (const float x : logits[i]) sum += std::exp(double{x});
    out.push_back(std::log(sum) - logits[i][row["ids"][i + 1].get<std::size_t>()]);
  }
  return out;
}

// The largest difference of a log-probability from the stored one.
double distance(const Json& row, const AllLogits& logits) {
  const std::vector<double> want = row["nll"], got = nll_of(row, logits);
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
  return worst;
}

class TinyGolden : public testing::TestWithParam<std::string> {
 protected:
  const Json row_ = row_named(GetParam());
};

TEST_P(TinyGolden, ReferenceEqualsTransformers) {
  const AllLogits logits = logits_of(row_, "reference");
  ASSERT_EQ(row_["nll"].size() + 1, logits.size());
  const double worst = distance(row_, logits);
  std::printf("%s: log-probabilities differ by at most %.2g\n", GetParam().c_str(), worst);
  EXPECT_LE(worst, kTolerance);
  for (std::size_t id = 0; id < logits.back().size(); ++id) {
    EXPECT_NEAR(logits.back()[id], row_["last_logits"][id].get<double>(), kTolerance) << id;
  }
}

// In float32 with F32 weights the fast path is as near.
TEST_P(TinyGolden, FastPathOfF32WeightsEqualsTransformers) {
  EXPECT_LE(distance(row_, logits_of(row_, "cpu")), kTolerance);
}

// int8 activations: rounding to 1/127 of a block's peak, which is about three deviations, is off by 3 / 127 / sqrt(12)
// = 0.7 % of the deviation. The inputs of 4 products in each of 3 layers and of the head are rounded independently:
// sqrt(13) times that, 2.5 % of the logits' deviation. Twice that is allowed, as products pass it on amplified.
TEST_P(TinyGolden, Int8PathIsWithinItsRounding) {
  const AllLogits want = logits_of(row_, "reference", Format::q8_0), got = logits_of(row_, "cpu", Format::q8_0);
  double sum = 0, squares = 0, errors = 0, count = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    for (std::size_t id = 0; id < want[i].size(); ++id) {
      sum += want[i][id];
      squares += double{want[i][id]} * want[i][id];
      errors += std::pow(double{got[i][id]} - want[i][id], 2);
      ++count;
    }
  }
  const double deviation = std::sqrt(squares / count - std::pow(sum / count, 2));
  const double relative = std::sqrt(errors / count) / deviation;
  std::printf("%s: int8 logits are off by %.2f %% of their deviation %.2f\n", GetParam().c_str(), 100 * relative,
              deviation);
  EXPECT_LE(relative, 0.05);
  EXPECT_GT(relative, 1e-5);  // else it was no int8 path
}

TEST_P(TinyGolden, RowsOfAPassAreBitsOfRowsAlone) {
  EXPECT_EQ(logits_of(row_, "cpu", Format::q8_0, 64), logits_of(row_, "cpu", Format::q8_0, 1));
}

INSTANTIATE_TEST_SUITE_P(Models, TinyGolden,
                         testing::Values("llama", "llama-linear", "llama-llama3", "llama-yarn", "qwen2", "qwen2-yarn",
                                         "qwen3", "phi3", "phi3-longrope-short", "phi3-longrope-long", "gemma2",
                                         "gemma3", "gemma3-linear"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The rows above would notice: whatever of its metadata is slightly wrong moves a log-probability far more than is
// tolerated.
TEST(TinyGoldenRows, NoticeEveryKey) {
  const std::vector<std::tuple<std::string, std::string, Json>> changes = {
      {"llama", "rope.freq_base", 11000.0},
      {"llama-linear", "rope.scaling.factor", 4.1},
      {"llama-linear", "rope.scaling.type", "none"},
      {"llama-yarn", "rope.scaling.factor", 4.1},
      {"llama-yarn", "rope.scaling.original_context_length", 32},
      {"llama-yarn", "rope.scaling.type", "linear"},
      {"qwen2-yarn", "rope.scaling.yarn_beta_fast", 16.0},
      {"qwen2-yarn", "rope.scaling.yarn_beta_slow", 1.0},
      {"qwen2-yarn", "rope.scaling.yarn_attn_factor", 1.26},
      {"phi3", "rope.dimension_count", 16},
      {"phi3", "attention.sliding_window", 23},
      {"phi3-longrope-long", "rope.scaling.attn_factor", 1.0},
      {"phi3-longrope-long", "rope.scaling.original_context_length", 96},
      {"gemma2", "attention.sliding_window", 25},
      {"gemma2", "attn_logit_softcapping", 3.1},
      {"gemma2", "final_logit_softcapping", 5.1},
      {"gemma3", "attention.sliding_window_pattern", 2},
      {"gemma3", "rope.freq_base", 900000.0},
      {"gemma3", "rope.freq_base_swa", 9000.0},
      {"gemma3-linear", "rope.scaling.factor", 7.0},
  };
  for (const auto& [name, key, value] : changes) {
    Json row = row_named(name);
    row["metadata"][row["architecture"].get<std::string>() + "." + key] = value;
    EXPECT_GT(distance(row, logits_of(row, "reference")), 10 * kTolerance) << name << " " << key;
  }
  Json llama3 = row_named("llama-llama3");
  llama3["tensors"].erase(
      std::ranges::find_if(llama3["tensors"], [](const Json& tensor) { return tensor[0] == "rope_freqs.weight"; }));
  EXPECT_GT(distance(llama3, logits_of(llama3, "reference")), 10 * kTolerance);
}

}  // namespace
}  // namespace tandem::test
