#include "src/model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "tests/base/temp_dir.h"
#include "tests/model/gguf_builder.h"

namespace tandem {
namespace {

using test::GgufBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The message of the Error(model) that the call throws.
template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class GgufTest : public ::testing::Test {
 protected:
  std::unique_ptr<GgufFile> open(const GgufBuilder& builder) {
    return GgufFile::open(folder_.file("m.gguf", builder.bytes()));
  }

  test::TempDir folder_;
};

TEST_F(GgufTest, ReadsMetadataOfEveryType) {
  GgufBuilder builder;
  builder.set("u8", std::uint8_t{200}).set("i8", std::int8_t{-100});
  builder.set("u16", std::uint16_t{60'000}).set("i16", std::int16_t{-30'000});
  builder.set("u32", std::uint32_t{4'000'000'000}).set("i32", std::int32_t{-2'000'000'000});
  builder.set("u64", std::uint64_t{1} << 63).set("i64", std::numeric_limits<std::int64_t>::min());
  builder.set("f32", 0.1f).set("f64", 0.1).set("yes", true).set("no", false).set("text", "zw\xc3\xb6lf");
  const auto file = open(builder);
  const auto at = [&](const char* key) { return file->metadata().at(key); };
  EXPECT_EQ(at("u8"), GgufValue(std::uint64_t{200}));
  EXPECT_EQ(at("i8"), GgufValue(std::int64_t{-100}));
  EXPECT_EQ(at("u16"), GgufValue(std::uint64_t{60'000}));
  EXPECT_EQ(at("i16"), GgufValue(std::int64_t{-30'000}));
  EXPECT_EQ(at("u32"), GgufValue(std::uint64_t{4'000'000'000}));
  EXPECT_EQ(at("i32"), GgufValue(std::int64_t{-2'000'000'000}));
  EXPECT_EQ(at("u64"), GgufValue(std::uint64_t{1} << 63));
  EXPECT_EQ(at("i64"), GgufValue(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(at("f32"), GgufValue(static_cast<double>(0.1f)));
  EXPECT_EQ(at("f64"), GgufValue(0.1));
  EXPECT_EQ(at("yes"), GgufValue(true));
  EXPECT_EQ(at("no"), GgufValue(false));
  EXPECT_EQ(at("text"), GgufValue(std::string("zw\xc3\xb6lf")));
  EXPECT_EQ(file->metadata().size(), 13u);
}

TEST_F(GgufTest, ReadsArraysOfEveryElementType) {
  GgufBuilder builder;
  builder.set("u8", std::vector<std::uint8_t>{1, 255}).set("i8", std::vector<std::int8_t>{-1, 127});
  builder.set("u16", std::vector<std::uint16_t>{65'535}).set("i16", std::vector<std::int16_t>{-2});
  builder.set("u32", std::vector<std::uint32_t>{7, 8}).set("i32", std::vector<std::int32_t>{-7, 8});
  builder.set("u64", std::vector<std::uint64_t>{9}).set("i64", std::vector<std::int64_t>{-9});
  builder.set("f32", std::vector<float>{0.5f, -2.0f}).set("f64", std::vector<double>{0.1});
  builder.set("bool", std::vector<bool>{true, false, true}).set("text", std::vector<std::string>{"a", "", "cc"});
  builder.set("empty", std::vector<std::string>{});
  const auto file = open(builder);
  EXPECT_THAT(file->integers("u8"), ElementsAre(1, 255));
  EXPECT_THAT(file->integers("i8"), ElementsAre(-1, 127));
  EXPECT_THAT(file->integers("u16"), ElementsAre(65'535));
  EXPECT_THAT(file->integers("i16"), ElementsAre(-2));
  EXPECT_THAT(file->integers("u32"), ElementsAre(7, 8));
  EXPECT_THAT(file->integers("i32"), ElementsAre(-7, 8));
  EXPECT_THAT(file->integers("u64"), ElementsAre(9));
  EXPECT_THAT(file->integers("i64"), ElementsAre(-9));
  EXPECT_EQ(file->metadata().at("f32"), GgufValue(GgufArray(std::vector<double>{0.5, -2.0})));
  EXPECT_EQ(file->metadata().at("f64"), GgufValue(GgufArray(std::vector<double>{0.1})));
  EXPECT_EQ(file->metadata().at("bool"), GgufValue(GgufArray(std::vector<bool>{true, false, true})));
  EXPECT_THAT(file->texts("text"), ElementsAre("a", "", "cc"));
  EXPECT_TRUE(file->texts("empty").empty());
}

TEST_F(GgufTest, FindsTensorsWhereTheyLie) {
  for (const std::uint32_t alignment : {1u, 8u, 32u, 4096u}) {
    GgufBuilder builder(alignment == 8 ? 2 : 3);
    builder.align(alignment);
    std::vector<float> values(12);
    std::iota(values.begin(), values.end(), 1.0f);
    builder.tensor_f32("a", {3}, std::span(values).first(3));
    builder.tensor_f32("b", {4, 3}, values);
    builder.tensor("c", {64, 2, 1, 2}, Format::q8_0, std::string(8 * 34, '\1'));
    const auto file = open(builder);
    EXPECT_EQ(file->version(), alignment == 8 ? 2 : 3);
    EXPECT_EQ(file->file_bytes(), builder.bytes().size());
    ASSERT_EQ(file->tensors().size(), 3u);
    EXPECT_EQ(file->tensors()[0].name, "a");
    const GgufTensor& b = file->require("b", 3, 4);
    EXPECT_EQ(b.format, Format::f32);
    EXPECT_EQ(b.rows(), 3);
    EXPECT_EQ(b.columns(), 4);
    std::vector<float> read(12);
    decode_blocks(b.format, b.data, read);
    EXPECT_EQ(read, values);
    const GgufTensor* c = file->find("c");
    ASSERT_NE(c, nullptr);
    EXPECT_THAT(c->shape, ElementsAre(64, 2, 1, 2));
    EXPECT_EQ(c->rows(), 4);
    EXPECT_EQ(c->data.size(), 8u * 34);
    EXPECT_EQ(c->data.back(), std::byte{1});
    EXPECT_EQ(file->find("d"), nullptr);
  }
}

TEST_F(GgufTest, ReadsAFileWithoutKeysOrTensors) {
  const auto file = open(GgufBuilder());
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_TRUE(file->metadata().empty());
  EXPECT_EQ(file->name(), "m.gguf");
  EXPECT_EQ(file->path(), folder_.path() + "/m.gguf");
}

TEST_F(GgufTest, RequiredShapesAreExact) {
  GgufBuilder builder;
  builder.tensor_f32("matrix", {3, 2}, std::vector<float>(6));
  builder.tensor_f32("vector", {3}, std::vector<float>(3));
  builder.tensor_f32("row", {3, 1}, std::vector<float>(3));
  builder.tensor_f32("cube", {3, 2, 2}, std::vector<float>(12));
  const auto file = open(builder);
  EXPECT_EQ(file->require("matrix", 2, 3).name, "matrix");
  EXPECT_EQ(file->require("vector", 1, 3).name, "vector");
  EXPECT_EQ(file->require("row", 1, 3).name, "row");
  EXPECT_EQ(refusal([&] { file->require("matrix", 2, 4); }), "m.gguf: tensor matrix: expected [2, 4], got [2, 3]");
  EXPECT_EQ(refusal([&] { file->require("matrix", 3, 2); }), "m.gguf: tensor matrix: expected [3, 2], got [2, 3]");
  EXPECT_EQ(refusal([&] { file->require("vector", 1, 2); }), "m.gguf: tensor vector: expected [2], got [3]");
  EXPECT_EQ(refusal([&] { file->require("cube", 4, 3); }), "m.gguf: tensor cube: expected [4, 3], got [2, 2, 3]");
  EXPECT_EQ(refusal([&] { file->require("none", 1, 3); }), "m.gguf: tensor none: expected [3], got no such tensor");
}

TEST_F(GgufTest, TypedReadsGiveTheValueOrNameKeyAndTypes) {
  GgufBuilder builder;
  builder.set("n", std::uint32_t{5}).set("minus", std::int32_t{-5}).set("big", ~std::uint64_t{0}).set("x", 2.5f);
  builder.set("t", "words").set("b", true).set("nan", std::numeric_limits<float>::quiet_NaN());
  builder.set("bigs", std::vector<std::uint64_t>{~std::uint64_t{0}});
  const auto file = open(builder);
  EXPECT_EQ(file->integer("n", 5, 5), 5);
  EXPECT_EQ(file->integer("minus", -5, 0), -5);
  EXPECT_EQ(file->integer_or("none", 7, 0, 1), 7);
  EXPECT_EQ(file->real("x"), 2.5);
  EXPECT_EQ(file->real_or("none", 1.5), 1.5);
  EXPECT_EQ(file->text("t"), "words");
  EXPECT_EQ(file->text_or("none", "other"), "other");
  EXPECT_TRUE(file->boolean_or("b", false));
  EXPECT_TRUE(file->boolean_or("none", true));
  EXPECT_TRUE(file->has("n"));
  EXPECT_FALSE(file->has("none"));

  EXPECT_EQ(refusal([&] { file->integer("n", 6, 9); }), "m.gguf: metadata n: expected an integer from 6 to 9, got 5");
  EXPECT_THAT(refusal([&] { file->integer("minus", 0, 9); }), HasSubstr("got -5"));
  EXPECT_THAT(refusal([&] { file->integer("big", -1, 9); }), HasSubstr("got 18446744073709551615"));
  EXPECT_EQ(refusal([&] { file->integer("x", 0, 9); }), "m.gguf: metadata x: expected an integer, got a float");
  EXPECT_EQ(refusal([&] { file->text("none"); }), "m.gguf: metadata none: expected a text, got no such key");
  EXPECT_THAT(refusal([&] { file->text_or("n", ""); }), HasSubstr("expected a text, got an integer"));
  EXPECT_THAT(refusal([&] { file->integer_or("t", 1, 0, 9); }), HasSubstr("expected an integer, got a text"));
  EXPECT_THAT(refusal([&] { file->boolean_or("n", true); }), HasSubstr("expected a boolean, got an integer"));
  EXPECT_THAT(refusal([&] { file->real("nan"); }), HasSubstr("expected a finite float, got nan"));
  EXPECT_THAT(refusal([&] { file->real_or("b", 1.0); }), HasSubstr("expected a float, got a boolean"));
  EXPECT_THAT(refusal([&] { file->texts("bigs"); }), HasSubstr("expected an array of texts, got an array of integers"));
  EXPECT_THAT(refusal([&] { file->integers("n"); }), HasSubstr("expected an array of integers, got an integer"));
  EXPECT_THAT(refusal([&] { file->integers("bigs"); }), HasSubstr("below 2^63, got 18446744073709551615"));
}

}  // namespace
}  // namespace tandem
