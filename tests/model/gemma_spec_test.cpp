// What the metadata of Gemma files says, and what stands in for keys that are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "src/arch/registry.h"
#include "src/base/error.h"
#include "tests/base/temp_dir.h"
#include "tests/model/gguf_builder.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

// The keys that every file has, and those that `more` adds.
ModelSpec spec_of(const std::string& architecture, const std::function<void(GgufBuilder&)>& more, int layers = 12) {
  GgufBuilder out;
  const auto set = [&](const std::string& key, std::uint32_t value) { out.set(architecture + "." + key, value); };
  out.set("general.architecture", architecture);
  set("block_count", static_cast<std::uint32_t>(layers));
  set("embedding_length", 64);
  set("feed_forward_length", 96);
  set("attention.head_count", 2);
  set("attention.key_length", 256);
  set("attention.value_length", 256);
  set("context_length", 8192);
  out.set(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f).set(architecture + ".rope.freq_base", 1e6f);
  more(out);
  out.tensor_f32("token_embd.weight", {64, 3}, std::vector<float>(192));
  const TempDir folder;
  return read_model_spec(*GgufFile::open(folder.file("gemma.gguf", out.bytes())));
}

std::string refusal(const std::string& architecture, const std::function<void(GgufBuilder&)>& more) {
  try {
    spec_of(architecture, more);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    return error.what();
  }
  return "accepted";
}

std::vector<bool> every(int period, int layers) {
  std::vector<bool> sliding;
  for (int i = 0; i < layers; ++i) sliding.push_back(i % period != period - 1);
  return sliding;
}

void window_512(GgufBuilder& out) { out.set("gemma3.attention.sliding_window", std::uint32_t{512}); }

TEST(GemmaSpec, LocalLayersKeepTheirRopeBaseWhateverTheGlobalOneIs) {  // B41
  const ModelSpec spec = spec_of("gemma3", window_512);
  EXPECT_EQ(spec.rope_base, 1e6);
  EXPECT_EQ(spec.sliding_rope_base, 1e4);
  EXPECT_EQ(spec.sliding, every(6, 12));
  EXPECT_EQ(spec.window_of(0), 512);
  EXPECT_EQ(spec.window_of(5), 0);
  EXPECT_TRUE(spec.qk_norm);
  EXPECT_TRUE(spec.post_norms);
  EXPECT_EQ(spec.activation, Activation::gelu);
  EXPECT_EQ(spec.embedding_scale, 8);
  EXPECT_EQ(spec.attention_scale, 1.0 / 16);
  EXPECT_EQ(spec.attention_soft_cap, 0);
  EXPECT_EQ(spec.final_soft_cap, 0);
}

TEST(GemmaSpec, TheFileMayNameBaseAndPattern) {
  const auto sliding = [](auto pattern) {
    return spec_of("gemma3",
                   [&](GgufBuilder& out) {
                     window_512(out);
                     out.set("gemma3.attention.sliding_window_pattern", pattern).set("gemma3.rope.freq_base_swa", 5e3f);
                   })
        .sliding;
  };
  EXPECT_EQ(sliding(std::uint32_t{4}), every(4, 12));
  EXPECT_EQ(sliding(std::uint32_t{1}), std::vector<bool>(12, false));
  EXPECT_EQ(sliding(std::uint32_t{0}), std::vector<bool>(12, true));
  const std::vector<bool> flags{true, false, false, true, true, true, false, true, false, false, false, true};
  EXPECT_EQ(sliding(flags), flags);
  const ModelSpec spec = spec_of("gemma3", [](GgufBuilder& out) {
    window_512(out);
    out.set("gemma3.rope.freq_base_swa", 5e3f);
  });
  EXPECT_EQ(spec.sliding_rope_base, 5e3);
}

// Gemma 3 of 4B and up: positions of the global layers alone are interpolated, up to the context that the file names.
TEST(GemmaSpec, ScaledRopeLeavesLayersWithARopeOfTheirOwnAlone) {
  const auto linear = [](const std::string& architecture) {
    return [architecture](GgufBuilder& out) {
      if (architecture == "gemma3") window_512(out);
      out.set(architecture + ".rope.scaling.type", "linear").set(architecture + ".rope.scaling.factor", 8.f);
    };
  };
  const ModelSpec spec = spec_of("gemma3", linear("gemma3"));
  EXPECT_EQ(spec.rope_divisors, std::vector<double>(128, 8));
  EXPECT_EQ(spec.rope_magnitude, 1);
  EXPECT_EQ(spec.sliding_rope_base, 1e4);
  EXPECT_EQ(spec.context, 8192);
  EXPECT_EQ(spec_of("gemma2", linear("gemma2")).rope_divisors, std::vector<double>(128, 8));
}

TEST(GemmaSpec, Gemma2HasTheSoftCapsAndTheWindowOfThePublishedModels) {
  const ModelSpec spec = spec_of("gemma2", [](GgufBuilder&) {});
  EXPECT_EQ(spec.sliding, every(2, 12));
  EXPECT_EQ(spec.window, 4096);
  EXPECT_EQ(spec.sliding_rope_base, 0);
  EXPECT_EQ(spec.attention_soft_cap, 50);
  EXPECT_EQ(spec.final_soft_cap, 30);
  EXPECT_FALSE(spec.qk_norm);
  const ModelSpec other = spec_of("gemma2", [](GgufBuilder& out) {
    out.set("gemma2.attn_logit_softcapping", 20.f).set("gemma2.final_logit_softcapping", 0.f);
  });
  EXPECT_EQ(other.attention_soft_cap, 20);
  EXPECT_EQ(other.final_soft_cap, 0);
}

TEST(GemmaSpec, TheLargestModelsScaleScoresByWidth) {
  EXPECT_EQ(spec_of(
                "gemma2", [](GgufBuilder&) {}, 46)
                .attention_scale,
            1 / std::sqrt(32.0));
  EXPECT_EQ(spec_of("gemma3", window_512, 62).attention_scale, 1 / std::sqrt(32.0));
}

TEST(GemmaSpec, WhatIsMissingOrAbsurdIsNamed) {
  EXPECT_THAT(refusal("gemma3", [](GgufBuilder&) {}), HasSubstr("gemma3.attention.sliding_window"));
  EXPECT_THAT(refusal("gemma2", [](GgufBuilder& out) { out.set("gemma2.attn_logit_softcapping", -1.f); }),
              HasSubstr("gemma2.attn_logit_softcapping: expected 0 or more, got -1"));
  EXPECT_THAT(refusal("gemma2", [](GgufBuilder& out) { out.set("gemma2.attention.sliding_window", std::uint32_t{0}); }),
              HasSubstr("gemma2.attention.sliding_window"));
  const auto with = [](auto value, const char* key) {
    return refusal("gemma3", [&](GgufBuilder& out) {
      window_512(out);
      out.set(std::string("gemma3.") + key, value);
    });
  };
  EXPECT_THAT(with(std::vector<bool>(5), "attention.sliding_window_pattern"),
              HasSubstr("gemma3.attention.sliding_window_pattern: expected 12 booleans"));
  EXPECT_THAT(with(0.f, "rope.freq_base_swa"), HasSubstr("gemma3.rope.freq_base_swa: expected more than 0, got 0"));
}

}  // namespace
}  // namespace tandem::test
