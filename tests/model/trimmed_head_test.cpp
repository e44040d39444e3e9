// Models that differ from their file: matrices in a smaller format, a head with some of its rows.
#include "src/model/trimmed_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/base/error.h"
#include "tests/model/tiny_model.h"

namespace tandem::test {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

class CheapModel : public ::testing::TestWithParam<std::string> {
 protected:
  TinyModel make(const WeightOptions& weights, bool tied = true, Format format = Format::q8_0) const {
    TinyOptions options;
    options.tied = tied;
    options.format = format;
    return TinyModel(options, GetParam(), 2, 128, weights);
  }
  // Logits after this text.
  static std::vector<float> logits(TinyModel& tiny, const std::vector<TokenId>& text) {
    KvCache cache = tiny.model.make_cache(64, KvType::f16);
    return feed(tiny.model, cache, text);
  }
};

const std::vector<TokenId> kText{5, 70, 33, 2, 70};

// The rows of the head lie in other tiles now, which changes no bit of a row.
TEST_P(CheapModel, KeptRowsGiveTheLogitsOfTheWholeHeadAndTheOthersNone) {
  for (const bool tied : {true, false}) {
    TinyModel whole = make({}, tied);
    const std::vector<TokenId> kept{0, 3, 4, 17, 33, 34, 90, 107, 111};
    TinyModel trimmed = make({.quantize = {}, .head_tokens = kept}, tied);
    const std::vector<float> expected = logits(whole, kText), got = logits(trimmed, kText);
    ASSERT_EQ(got.size(), expected.size());
    for (TokenId token = 0; token < 112; ++token) {
      const bool has_row = std::ranges::find(kept, token) != kept.end();
      EXPECT_EQ(got[token], has_row ? expected[token] : kNever) << token << (tied ? " tied" : "");
    }
    EXPECT_EQ(trimmed.model.weights().head().rows, 9);
    EXPECT_LT(trimmed.model.weights().bytes_per_pass(), whole.model.weights().bytes_per_pass());
  }
}

TEST_P(CheapModel, TokensOfTheTextGetTheirRowsAndLoseThemWithTheText) {
  TinyModel whole = make({}), trimmed = make({.quantize = {}, .head_tokens = {0, 33}});
  const std::vector<float> expected = logits(whole, kText);
  trimmed.model.follow(kText);
  std::vector<float> got = logits(trimmed, kText);
  for (TokenId token = 0; token < 112; ++token) {
    if (token == 0 || token == 33) {
      EXPECT_EQ(got[token], expected[token]);
    } else if (token == 5 || token == 70 || token == 2) {
      // Float input where the other has 8-bit activations: close, as the two are.
      EXPECT_NEAR(got[token], expected[token], 0.05 * std::abs(expected[token]) + 0.1) << token;
    } else {
      EXPECT_EQ(got[token], kNever) << token;
    }
  }
  trimmed.model.follow(std::vector<TokenId>{5, 33, 8});
  got = logits(trimmed, kText);
  for (const TokenId token : {70, 2}) EXPECT_EQ(got[token], kNever);
  for (const TokenId token : {5, 8}) EXPECT_TRUE(std::isfinite(got[token]));
}

// A function of the text alone, however it was come by.
TEST_P(CheapModel, RowsOfTheTextDoNotDependOnWhatCameBefore) {
  TinyModel fresh = make({.quantize = {}, .head_tokens = {0, 33}}),
            used = make({.quantize = {}, .head_tokens = {0, 33}});
  std::mt19937_64 random(3);
  std::vector<TokenId> text = random_tokens(random, 40);
  used.model.follow(random_tokens(random, 30));
  logits(used, kText);
  for (const std::size_t size : {10u, 11u, 40u}) used.model.follow(std::span(text).first(size));
  fresh.model.follow(text);
  EXPECT_EQ(logits(used, kText), logits(fresh, kText));
}

// What a model with these matrices in Q4_0 in its file would give: encoding is the only difference.
TEST_P(CheapModel, ConvertedMatricesAreTheEncodedOnes) {
  TinyOptions options;
  options.format = Format::f32;
  options.tied = false;
  options.edit = [](std::string_view name, std::string& data) {  // what Q4_0 keeps of each matrix, as floats
    if (name == "token_embd.weight" || name.find("norm") != name.npos || name.find("bias") != name.npos) return;
    std::vector<float> values(data.size() / 4);
    std::memcpy(values.data(), data.data(), data.size());
    std::vector<std::byte> blocks(encoded_bytes(Format::q4_0, values.size()));
    encode_blocks(Format::q4_0, values, blocks);
    decode_blocks(Format::q4_0, blocks, values);
    std::memcpy(data.data(), values.data(), data.size());
  };
  TinyModel rounded(options, "reference");
  options.edit = nullptr;
  TinyModel converted(options, "reference", 1, 128, {.quantize = Format::q4_0, .head_tokens = {}});
  EXPECT_EQ(logits(converted, kText), logits(rounded, kText));
  EXPECT_NE(logits(converted, kText), logits(*std::make_unique<TinyModel>(options, "reference"), kText));
}

TEST_P(CheapModel, ThreadsThatConvertChangeNoBit) {
  const WeightOptions cheap{.quantize = Format::q4_0, .head_tokens = {0, 3, 4, 17, 33, 34, 90, 107, 111}};
  TinyOptions options;
  options.format = Format::q8_0;
  TinyModel alone(options, GetParam(), 1, 128, cheap);
  const std::vector<float> expected = logits(alone, kText);
  for (const int threads : {2, 3, 7}) {  // with seven, some have no row of the smaller matrices
    TinyModel shared(options, GetParam(), threads, 128, cheap);
    EXPECT_EQ(logits(shared, kText), expected) << threads << " threads";
  }
}

TEST_P(CheapModel, FormatThatNothingEncodesIsRefused) {
  EXPECT_THROW(make({.quantize = Format::q4_1, .head_tokens = {}}), Error);
}

TEST_P(CheapModel, OnlyLargerFormatsAreConverted) {
  const auto formats = [](const TinyModel& tiny) {
    const Weights& w = tiny.model.weights();
    return std::vector{w.embedding->format, w.head().format, w.layers[0].query->format, w.layers[1].down->format};
  };
  using enum Format;
  const auto converted = [&](Format from, Format to, bool tied) {
    return formats(make({.quantize = to, .head_tokens = {}}, tied, from));
  };
  EXPECT_EQ(converted(q8_0, q4_0, true), (std::vector{q8_0, q4_0, q4_0, q4_0}));
  EXPECT_EQ(converted(q8_0, q4_0, false), (std::vector{q8_0, q4_0, q4_0, q4_0}));
  EXPECT_EQ(converted(q8_0, q8_0, true), (std::vector{q8_0, q8_0, q8_0, q8_0}));
  EXPECT_EQ(converted(f32, q8_0, true), (std::vector{f32, q8_0, q8_0, q8_0}));
  const TinyModel k(wide_options(q4_k), GetParam(), 1, 128, {.quantize = q4_0, .head_tokens = {}});
  EXPECT_EQ(formats(k), (std::vector{q4_k, q4_k, q4_k, q4_k}));  // as many bits a value
  const TinyModel larger(wide_options(q6_k), GetParam(), 1, 128, {.quantize = q4_0, .head_tokens = {1, 2}});
  EXPECT_EQ(formats(larger), (std::vector{q6_k, q4_0, q4_0, q4_0}));
}

INSTANTIATE_TEST_SUITE_P(Backends, CheapModel, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return info.param; });

// The table and backend of a model, with a head of our own: more tokens than it has room for.
TEST(TrimmedHead, LatestTokensOfALongTextKeepTheirRows) {
  TinyOptions options;
  options.rows = 1300;
  options.context = 2048;
  TinyModel tiny(options);
  const std::vector<TokenId> kept{0};
  TrimmedHead head(kept, *tiny.model.weights().embedding, *tiny.backend, 2048);
  std::vector<TokenId> text(1200);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<TokenId>(i);
  head.follow(text);
  ASSERT_EQ(head.text_tokens().size(), static_cast<std::size_t>(TrimmedHead::kTextRows));
  std::vector<float> input(64, 1.0f), chosen{2.5f};
  const Logits logits = head.expand({chosen.data(), 1, 1, 1}, {input.data(), 1, 64, 64});
  EXPECT_EQ(logits.row(0)[0], 2.5f);
  for (TokenId token = 1; token < 1300; ++token) {
    EXPECT_EQ(std::isfinite(logits.row(0)[token]), token >= 1200 - TrimmedHead::kTextRows && token < 1200) << token;
  }
  text.push_back(1);  // back again, in place of the oldest
  head.follow(text);
  const Logits after = head.expand({chosen.data(), 1, 1, 1}, {input.data(), 1, 64, 64});
  EXPECT_TRUE(std::isfinite(after.row(0)[1]));
  EXPECT_EQ(after.row(0)[1200 - TrimmedHead::kTextRows], kNever);
}

}  // namespace
}  // namespace tandem::test
