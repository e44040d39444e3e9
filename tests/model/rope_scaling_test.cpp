// What architecture files read of scaled rope, windows and tensors that they do not know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "src/base/error.h"
#include "src/model/rope.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

ModelSpec spec_of(const TinyOptions& options) {
  TempDir folder;
  return read_model_spec(*GgufFile::open(write_tiny_model(folder, "tiny.gguf", options)));
}

ModelSpec spec_of(const std::string& architecture, std::function<void(GgufBuilder&)> more) {
  TinyOptions options;
  options.architecture = architecture;
  options.more = std::move(more);
  return spec_of(options);
}

std::string refusal(const std::string& architecture, std::function<void(GgufBuilder&)> more) {
  try {
    spec_of(architecture, std::move(more));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    return error.what();
  }
  return "accepted";
}

void set_yarn(GgufBuilder& file, const std::string& architecture) {
  file.set(architecture + ".rope.scaling.type", "yarn").set(architecture + ".rope.scaling.factor", 4.0f);
}

const std::vector<float> kFactors{1, 1, 2, 2, 4, 4, 8, 8};

TEST(RopeScaling, NoKeysScaleNothing) {
  const ModelSpec spec = spec_of("llama", {});
  EXPECT_TRUE(spec.rope_divisors.empty());
  EXPECT_TRUE(spec.rope_long_divisors.empty());
  EXPECT_EQ(spec.rope_magnitude, 1);
  EXPECT_EQ(spec.context, 512);
}

TEST(RopeScaling, AFactorWithoutATypeIsLinear) {
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    const ModelSpec spec = spec_of("llama", [&](GgufBuilder& file) { file.set(key, 2.0f); });
    EXPECT_EQ(spec.rope_divisors, std::vector<double>(8, 2)) << key;
    EXPECT_EQ(spec.context, 512);
  }
  EXPECT_TRUE(spec_of("llama", [](GgufBuilder& file) {
                file.set("llama.rope.scaling.type", "none").set("llama.rope.scaling.factor", 2.0f);
              }).rope_divisors.empty());
  EXPECT_TRUE(
      spec_of("llama", [](GgufBuilder& file) { file.set("llama.rope.scale_linear", 0.0f); }).rope_divisors.empty());
}

TEST(RopeScaling, ContextIsWhatTheScalingReaches) {
  EXPECT_EQ(spec_of("qwen2", [](GgufBuilder& file) { set_yarn(file, "qwen2"); }).context, 4 * 512);
  const auto original = [](const std::string& type, std::uint32_t length) {
    return spec_of("llama",
                   [&](GgufBuilder& file) {
                     file.set("llama.rope.scaling.type", type).set("llama.rope.scaling.factor", 4.0f);
                     file.set("llama.rope.scaling.original_context_length", length);
                   })
        .context;
  };
  EXPECT_EQ(original("yarn", 128), 512);
  EXPECT_EQ(original("yarn", 256), 1024);
  EXPECT_EQ(original("linear", 256), 1024);
}

TEST(RopeScaling, YarnLeavesFastPairsAloneAndSlowsSlowOnes) {
  const std::vector<double> divisors = yarn_divisors({.factor = 8, .original_context = 4096}, 10000, 128);
  ASSERT_EQ(divisors.size(), 64u);
  EXPECT_EQ(divisors.front(), 1);
  EXPECT_DOUBLE_EQ(divisors.back(), 8);
  EXPECT_TRUE(std::ranges::is_sorted(divisors));
  // Turns over the original context fall from 652 to 0.075; 32 at pair 20.9 and 1 at pair 45.03.
  EXPECT_EQ(divisors[20], 1);
  EXPECT_GT(divisors[21], 1);
  EXPECT_LT(divisors[45], 8);
  EXPECT_DOUBLE_EQ(divisors[46], 8);
  EXPECT_DOUBLE_EQ(yarn_magnitude(8, 1), 1 + 0.1 * std::log(8));
  EXPECT_EQ(yarn_magnitude(1, 1), 1);
}

TEST(RopeScaling, YarnLengthsFollowTheirKeys) {
  const auto magnitude = [](const std::string& key, float value) {
    return spec_of("qwen2",
                   [&](GgufBuilder& file) {
                     set_yarn(file, "qwen2");
                     if (!key.empty()) file.set("qwen2.rope.scaling." + key, value);
                   })
        .rope_magnitude;
  };
  EXPECT_DOUBLE_EQ(magnitude("", 0), 1 + 0.1 * std::log(4));
  EXPECT_DOUBLE_EQ(magnitude("yarn_log_multiplier", 1), 1);
  EXPECT_DOUBLE_EQ(magnitude("yarn_attn_factor", 1.5f), 1.5);
  EXPECT_DOUBLE_EQ(magnitude("attn_factor", 0.5f), 0.5 * (1 + 0.1 * std::log(4)));
}

TEST(RopeScaling, FactorsOfTensorsMultiplyWhatTheKeysSay) {
  const ModelSpec spec = spec_of("llama", [](GgufBuilder& file) {
    file.set("llama.rope.scaling.factor", 2.0f).tensor_f32("rope_freqs.weight", {8}, kFactors);
  });
  EXPECT_EQ(spec.rope_divisors, (std::vector<double>{2, 2, 4, 4, 8, 8, 16, 16}));
}

TEST(RopeScaling, LongFactorsHoldBeyondTheOriginalContextAlone) {
  TinyOptions options;
  options.architecture = "llama";
  options.more = [](GgufBuilder& file) {
    file.set("llama.rope.scaling.type", "longrope")
        .set("llama.rope.scaling.original_context_length", std::uint32_t{64});
    file.tensor_f32("rope_factors_long.weight", {8}, kFactors).tensor_f32("rope_factors_short.weight", {8}, kFactors);
  };
  TempDir folder;
  const auto file = GgufFile::open(write_tiny_model(folder, "tiny.gguf", options));
  ModelSpec spec = read_model_spec(*file);
  spec.rope_divisors.assign(8, 1);
  ThreadPool pool(1);
  const auto backend = make_backend("reference", pool);
  const std::vector<TokenId> prompt{3, 1, 4, 1, 5, 9};
  const auto logits = [&](int positions) {
    Transformer model(spec, *file, *backend, 64, positions);
    KvCache cache = model.make_cache(16, KvType::f32);
    return feed(model, cache, prompt);
  };
  EXPECT_EQ(logits(64), logits(16));
  EXPECT_NE(logits(65), logits(64));
}

TEST(RopeScaling, WhatCannotBeRunIsRefusedByName) {
  using testing::HasSubstr;
  const auto key = [](const std::string& name, const auto& value) {
    return refusal("qwen2", [&](GgufBuilder& file) {
      set_yarn(file, "qwen2");
      file.set("qwen2.rope.scaling." + name, value);
    });
  };
  EXPECT_EQ(refusal("llama", [](GgufBuilder& f) { f.set("llama.rope.scaling.type", "dynamic"); }),
            "tiny.gguf: llama.rope.scaling.type: expected none, linear, yarn or longrope, got dynamic");
  EXPECT_EQ(refusal("llama", [](GgufBuilder& f) { f.set("llama.rope.scaling.type", "yarn"); }),
            "tiny.gguf: llama.rope.scaling.factor: missing, which yarn needs");
  EXPECT_THAT(refusal("llama", [](GgufBuilder& f) { f.set("llama.rope.scaling.type", "longrope"); }),
              HasSubstr("rope_factors_long.weight"));
  EXPECT_THAT(
      refusal("phi3",
              [](GgufBuilder& f) { f.tensor_f32("rope_factors_long.weight", {4}, std::span(kFactors).first(4)); }),
      HasSubstr("rope_factors_short.weight"));
  EXPECT_THAT(
      refusal("llama", [](GgufBuilder& f) { f.tensor_f32("rope_freqs.weight", {7}, std::span(kFactors).first(7)); }),
      HasSubstr("rope_freqs.weight"));
  EXPECT_THAT(refusal("llama", [](GgufBuilder& f) { f.tensor_f32("rope_freqs.weight", {8}, std::vector<float>(8)); }),
              HasSubstr("expected values in 1e-6..1e6, got 0"));
  EXPECT_THAT(refusal("llama", [](GgufBuilder& f) { f.set("llama.rope.scaling.factor", -2.0f); }),
              HasSubstr("llama.rope.scaling.factor: expected 1e-6..1e6, got -2"));
  EXPECT_THAT(key("yarn_ext_factor", 0.5f), HasSubstr("qwen2.rope.scaling.yarn_ext_factor: expected 1, got 0.5"));
  EXPECT_THAT(key("yarn_beta_fast", 0.0f), HasSubstr("qwen2.rope.scaling.yarn_beta_fast"));
  EXPECT_THAT(key("yarn_log_multiplier", -1.0f), HasSubstr("qwen2.rope.scaling.yarn_log_multiplier"));
  EXPECT_THAT(key("original_context_length", std::uint32_t{0}), HasSubstr("original_context_length"));
  EXPECT_EQ(key("yarn_ext_factor", -1.0f), "accepted");
}

TEST(Phi3, SlidesInAllLayersUnlessTheWindowHoldsTheContext) {
  TinyOptions options;
  options.architecture = "phi3";
  const ModelSpec sliding = spec_of(options);
  EXPECT_EQ(sliding.window_of(0), 16);
  EXPECT_EQ(sliding.window_of(1), 16);
  for (const int window : {0, 512, 262144}) {
    options.window = window;
    EXPECT_EQ(spec_of(options).window_of(0), 0) << window;
  }
}

// Published files of the first weeks have no window, though the model has.
TEST(Phi3, FilesWithoutAWindowHaveThatOfThePublishedModels) {
  const auto window = [](std::uint32_t layers, std::uint32_t context) {
    GgufBuilder out;
    out.set("general.architecture", "phi3").set("phi3.block_count", layers).set("phi3.context_length", context);
    out.set("phi3.embedding_length", std::uint32_t{8}).set("phi3.feed_forward_length", std::uint32_t{8});
    out.set("phi3.attention.head_count", std::uint32_t{2}).set("phi3.attention.layer_norm_rms_epsilon", 1e-5f);
    out.tensor_f32("token_embd.weight", {8, 4}, std::vector<float>(32));
    TempDir folder;
    return read_model_spec(*GgufFile::open(folder.file("phi.gguf", out.bytes()))).window_of(0);
  };
  EXPECT_EQ(window(32, 4096), 2047);
  EXPECT_EQ(window(40, 4096), 2047);
  EXPECT_EQ(window(32, 16384), 0);
  EXPECT_EQ(window(24, 4096), 0);
}

// Phi-3's fused tensors hold the rows of the separate ones, and both kinds of file run.
TEST(Phi3, FusedTensorsAreTheirParts) {
  const std::vector<TokenId> prompt{3, 1, 4, 1, 5, 9, 2, 6};
  TinyOptions options;
  options.architecture = "phi3";
  std::map<std::string, std::string> parts;
  options.edit = [&](std::string_view name, std::string& data) { parts[std::string(name)] = data; };
  for (const std::optional<Format> quantize : {std::optional<Format>(), std::optional(Format::q8_0)}) {
    const WeightOptions weights{.quantize = quantize, .head_tokens = {}};
    TinyModel fused(options, "reference", 1, 128, weights);
    KvCache cache = fused.model.make_cache(16, KvType::f32);
    const std::vector<float> expected = feed(fused.model, cache, prompt);

    TinyOptions split = options;
    split.architecture = "split";
    split.edit = [&](std::string_view name, std::string& data) {
      const std::string block(name.substr(0, name.find_last_of('.', name.size() - 8) + 1));
      const auto slice = [&](const std::string& whole, int first) {
        const std::string& all = parts.at(block + whole);
        data = all.substr(static_cast<std::size_t>(first) * 64 * sizeof(float), data.size());
      };
      if (name.ends_with("attn_q.weight")) slice("attn_qkv.weight", 0);
      if (name.ends_with("attn_k.weight")) slice("attn_qkv.weight", 64);
      if (name.ends_with("attn_v.weight")) slice("attn_qkv.weight", 96);
      if (name.ends_with("ffn_gate.weight")) slice("ffn_up.weight", 0);
      if (name.ends_with("ffn_up.weight")) slice("ffn_up.weight", 96);
    };
    TempDir folder;
    const auto file = GgufFile::open(write_tiny_model(folder, "split.gguf", split));
    ModelSpec spec = fused.model.spec();
    spec.fused_qkv = spec.fused_gate_up = false;
    Transformer model(spec, *file, *fused.backend, 128, 512, weights);
    KvCache other = model.make_cache(16, KvType::f32);
    EXPECT_EQ(feed(model, other, prompt), expected);
  }
}

TEST(Architectures, ATensorThatNoPartUsesIsRefused) {
  TinyOptions options;
  options.architecture = "llama";
  options.more = [](GgufBuilder& file) { file.tensor_f32("blk.0.ffn_gate_inp.weight", {8}, kFactors); };
  try {
    TinyModel model(options);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "tiny.gguf: tensor blk.0.ffn_gate_inp.weight: not a part of llama as this version runs it");
  }
}

TEST(Architectures, MixturesOfExpertsAreRefusedByTheirKey) {
  EXPECT_EQ(refusal("llama", [](GgufBuilder& file) { file.set("llama.expert_count", std::uint32_t{8}); }),
            "tiny.gguf: llama.expert_count: expected 0, got 8; mixtures of experts are not available in this version");
  EXPECT_EQ(refusal("llama", [](GgufBuilder& file) { file.set("llama.expert_count", std::uint32_t{0}); }), "accepted");
}

}  // namespace
}  // namespace tandem::test
