// Cut, foreign and hostile GGUF files: a typed error that names the place, never a crash, a wait or a huge reservation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/model/gguf.h"
#include "src/model/gguf_reader.h"
#include "tests/base/temp_dir.h"
#include "tests/model/gguf_builder.h"

namespace tandem {
namespace {

using test::GgufBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

GgufDirectory read(std::string_view content) {
  return read_gguf_directory(std::as_bytes(std::span(content)), "m.gguf");
}

// The message of the Error(file) that reading this content throws; empty when it reads.
std::string refusal(std::string_view content) {
  try {
    read(content);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    EXPECT_THAT(error.what(), StartsWith("m.gguf: "));
    return error.what();
  }
}

std::string refusal(const GgufBuilder& builder) { return refusal(builder.bytes()); }

GgufBuilder tiny() {
  GgufBuilder builder;
  builder.set("general.architecture", "llama").align(16).set("llama.block_count", std::uint32_t{2});
  builder.set("tokens", std::vector<std::string>{"a", "bc", ""}).set("scores", std::vector<float>{0.5f, -1.0f});
  builder.set("types", std::vector<std::int8_t>{1, 2, 3}).set("flags", std::vector<bool>{true, false}).set("add", true);
  builder.tensor("token_embd.weight", {32, 3}, Format::q4_0, std::string(3 * 18, '\x5a'));
  builder.tensor_f32("norm.weight", {5}, std::vector<float>(5, 1.0f));
  builder.tensor("output.weight", {256}, Format::q6_k, std::string(210, '\x11'));
  return builder;
}

std::string text_bytes(std::uint64_t length, std::string_view text) {
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  return out + std::string(text);
}

std::string array_bytes(std::uint32_t type, std::uint64_t count) {
  std::string out(reinterpret_cast<const char*>(&type), sizeof type);
  return out.append(reinterpret_cast<const char*>(&count), sizeof count);
}

// Memory the process has ever held at once, in bytes.
std::int64_t peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * std::int64_t{1024};
}

// Everything an accepted directory promises.
void expect_consistent(const GgufDirectory& directory, std::string_view content) {
  const auto* begin = reinterpret_cast<const std::byte*>(content.data());
  for (const GgufTensor& tensor : directory.tensors) {
    const FormatInfo& info = format_info(tensor.format);
    ASSERT_GE(tensor.shape.size(), 1u);
    ASSERT_LE(tensor.shape.size(), 4u);
    for (const std::int64_t size : tensor.shape) ASSERT_GE(size, 1);
    ASSERT_EQ(tensor.columns() % info.block_values, 0);
    const auto blocks = static_cast<std::size_t>(tensor.columns() / info.block_values * tensor.rows());
    ASSERT_EQ(tensor.data.size(), blocks * static_cast<std::size_t>(info.block_bytes));
    ASSERT_GE(tensor.data.data(), begin);
    ASSERT_LE(tensor.data.data() + tensor.data.size(), begin + content.size());
    std::vector<float> values(blocks * static_cast<std::size_t>(info.block_values));
    decode_blocks(tensor.format, tensor.data, values);
  }
}

TEST(GgufHostile, TheTinyFileItselfIsGood) {
  const std::string content = tiny().bytes();
  const GgufDirectory directory = read(content);
  EXPECT_EQ(directory.tensors.size(), 3u);
  EXPECT_EQ(directory.metadata.size(), 8u);
  expect_consistent(directory, content);
}

TEST(GgufHostile, EveryCutIsRefused) {
  const std::string content = tiny().bytes();
  for (std::size_t size = 0; size < content.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees any read past it.
    const std::vector<char> cut(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_THAT(refusal(std::string_view(cut.data(), cut.size())), HasSubstr("bytes")) << size;
  }
}

TEST(GgufHostile, EveryFlippedHeadByteIsRefusedOrHarmless) {
  const std::string content = tiny().bytes();
  const std::size_t head = tiny().head().size();
  int refused = 0;
  for (std::size_t i = 0; i < head; ++i) {
    for (const unsigned flip : {0xffu, 0x80u, 0x01u, 0x20u}) {
      std::string changed = content;
      changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ flip);
      try {
        expect_consistent(read(changed), changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::file);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(head)) << "most flips touch a length, a count, a type or an offset";
}

TEST(GgufHostile, ForeignAndUnsupportedFilesAreNamed) {
  EXPECT_THAT(refusal("PK\3\4 some other file"), HasSubstr("expected the magic \"GGUF\", got \"PK\\x03\\x04\""));
  EXPECT_THAT(refusal("GG"), AllOf(HasSubstr("magic needs 4 bytes"), HasSubstr("2 bytes left")));
  EXPECT_THAT(refusal(GgufBuilder(1)), HasSubstr("version 1 is not supported"));
  EXPECT_THAT(refusal(GgufBuilder(0x03000000)), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(GgufBuilder(0)), HasSubstr("got 0"));
  EXPECT_THAT(refusal(GgufBuilder(4)), HasSubstr("got 4"));
}

TEST(GgufHostile, AbsurdCountsAreRefusedWithoutReservingMemory) {
  const std::int64_t before = peak_memory_bytes();
  for (const std::uint64_t count : {kHuge, ~std::uint64_t{0}, kHuge / 8, std::uint64_t{1} << 42}) {
    const std::string number = std::to_string(count);
    EXPECT_THAT(refusal(GgufBuilder().claim_counts(0, count)), AllOf(HasSubstr("key count"), HasSubstr(number)));
    EXPECT_THAT(refusal(GgufBuilder().claim_counts(count, 0)), AllOf(HasSubstr("tensor count"), HasSubstr(number)));
    EXPECT_THAT(refusal(GgufBuilder().set_raw("the.text", 8, text_bytes(count, "abc"))),
                AllOf(HasSubstr("the.text"), HasSubstr(number), HasSubstr("left")));
    for (const std::uint32_t type : {0u, 4u, 6u, 7u, 8u, 12u}) {
      EXPECT_THAT(refusal(GgufBuilder().set_raw("the.array", 9, array_bytes(type, count))),
                  AllOf(HasSubstr("the.array"), HasSubstr(number), HasSubstr("left")));
    }
  }
  // The length of the first key itself.
  std::string content = GgufBuilder().set("k", true).bytes();
  content.replace(24, 8, text_bytes(kHuge, ""));
  EXPECT_THAT(refusal(content), AllOf(HasSubstr("metadata key 1 of 1"), HasSubstr("9223372036854775808")));
  EXPECT_LT(peak_memory_bytes() - before, 100 << 20);
}

TEST(GgufHostile, ArraysBeyondAnyVocabularyAreRefused) {
  const std::uint64_t count = (std::uint64_t{1} << 22) + 1;
  const std::string content = array_bytes(0, count) + std::string(count, '\0');
  EXPECT_THAT(refusal(GgufBuilder().set_raw("a", 9, content)), HasSubstr("at most 4194304 values, got 4194305"));
}

TEST(GgufHostile, TensorSizesThatOverflowAreRefused) {
  const auto with_shape = [](const std::vector<std::uint64_t>& shape, Format format) {
    return refusal(GgufBuilder().tensor("token_embd.weight", shape, format, std::string(64, '\0')));
  };
  // 32 * (2^42 + 1) values in Q4_1: about 88 TB that the file does not have.
  EXPECT_THAT(
      with_shape({32, (std::uint64_t{1} << 42) + 1}, Format::q4_1),
      AllOf(HasSubstr("tensor token_embd.weight"), HasSubstr("needs 87960930222100 bytes"), HasSubstr("64 bytes")));
  // Products that wrap to something small.
  EXPECT_THAT(with_shape({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, Format::f32),
              HasSubstr("overflows 64 bits"));
  EXPECT_THAT(with_shape({4, std::uint64_t{1} << 60, 16, 4}, Format::f16), HasSubstr("overflows 64 bits"));
  EXPECT_THAT(with_shape({std::uint64_t{1} << 62}, Format::f32), HasSubstr("overflows 64 bits"));
  EXPECT_THAT(with_shape({kHuge}, Format::f32), HasSubstr("below 2^63, got 9223372036854775808"));
}

TEST(GgufHostile, ShapesAreOneToFourSizesOfAtLeastOneInWholeBlocks) {
  const auto with_shape = [](const std::vector<std::uint64_t>& shape) {
    return refusal(GgufBuilder().tensor("w", shape, Format::q8_0, std::string(34, '\0')));
  };
  EXPECT_EQ(with_shape({32}), "");
  EXPECT_EQ(with_shape({32, 1, 1, 1}), "");
  EXPECT_THAT(with_shape({}), AllOf(HasSubstr("tensor w"), HasSubstr("1 to 4 dimensions, got 0")));
  EXPECT_THAT(with_shape({32, 1, 1, 1, 1}), HasSubstr("1 to 4 dimensions, got 5"));
  EXPECT_THAT(with_shape({0}), AllOf(HasSubstr("tensor w"), HasSubstr("dimension 0"), HasSubstr("got 0")));
  EXPECT_THAT(with_shape({32, 0}), AllOf(HasSubstr("dimension 1"), HasSubstr("got 0")));
  EXPECT_THAT(with_shape({33}), HasSubstr("multiples of 32 for Q8_0, got 33"));
}

TEST(GgufHostile, UnknownTensorTypesAreNamedAndNeverReadAsFloats) {
  const auto with_type = [](std::uint32_t id) {
    return refusal(GgufBuilder().tensor_raw("blk.0.attn_q.weight", {256}, id, std::string(1024, '\0')));
  };
  EXPECT_EQ(with_type(0), "");
  EXPECT_EQ(with_type(42), "m.gguf: tensor blk.0.attn_q.weight: unknown tensor type id 42");
  EXPECT_EQ(with_type(10),
            "m.gguf: tensor blk.0.attn_q.weight: tensor type Q2_K (id 10) is not supported by this build");
  EXPECT_THAT(with_type(11), HasSubstr("Q3_K"));
  EXPECT_THAT(with_type(20), HasSubstr("IQ4_NL"));
  EXPECT_THAT(with_type(39), HasSubstr("MXFP4"));
  EXPECT_THAT(with_type(0xffffffff), HasSubstr("4294967295"));
}

TEST(GgufHostile, AlignmentIsAnIntegerPowerOfTwo) {
  const std::string key = "general.alignment";
  const auto with = [&](const auto& value) { return refusal(GgufBuilder().set(key, value)); };
  EXPECT_EQ(with(std::uint32_t{64}), "");
  EXPECT_EQ(with(std::int64_t{8}), "");
  for (const std::uint32_t bad : {0u, 3u, 48u}) {
    EXPECT_THAT(with(bad), AllOf(HasSubstr(key), HasSubstr("power of two, got " + std::to_string(bad))));
  }
  EXPECT_THAT(with(std::int32_t{-8}), AllOf(HasSubstr(key), HasSubstr("got -8")));
  EXPECT_THAT(with(std::string("32")), AllOf(HasSubstr(key), HasSubstr("expected an integer, got the text \"32\"")));
  EXPECT_THAT(with(32.0f), AllOf(HasSubstr(key), HasSubstr("expected an integer")));
  EXPECT_THAT(with(std::vector<std::uint32_t>{32}), AllOf(HasSubstr(key), HasSubstr("expected an integer")));
  // No byte of the file can lie after padding to 2^63.
  EXPECT_THAT(refusal(GgufBuilder().set(key, kHuge).tensor_f32("w", {1}, std::vector<float>(1))), HasSubstr("0 bytes"));
}

TEST(GgufHostile, DataLiesAlignedInsideTheFile) {
  const auto with_offset = [](std::uint64_t offset) {
    return refusal(GgufBuilder().tensor_raw("w", {16}, 0, std::string(64, '\0'), offset));
  };
  EXPECT_EQ(with_offset(0), "");
  EXPECT_THAT(with_offset(16), AllOf(HasSubstr("tensor w"), HasSubstr("multiples of 32, got 16")));
  EXPECT_THAT(with_offset(32),
              AllOf(HasSubstr("tensor w"), HasSubstr("needs 64 bytes at byte 32"), HasSubstr("64 bytes")));
  EXPECT_THAT(with_offset(~std::uint64_t{0} - 31), HasSubstr("needs 64 bytes"));
}

TEST(GgufHostile, KeysAndTensorsAppearOnce) {
  EXPECT_EQ(refusal(GgufBuilder().set("k", true).set("k", true)), "m.gguf: metadata k: the key appears twice");
  GgufBuilder twice;
  twice.tensor_f32("w", {1}, std::vector<float>(1)).tensor_f32("w", {1}, std::vector<float>(1));
  EXPECT_EQ(refusal(twice), "m.gguf: tensor w: the name appears twice");
}

TEST(GgufHostile, ValueTypesAndBooleansAreChecked) {
  const std::string value(16, '\2');
  EXPECT_THAT(refusal(GgufBuilder().set_raw("k", 13, value)), AllOf(HasSubstr("metadata k"), HasSubstr("type 13")));
  EXPECT_THAT(refusal(GgufBuilder().set_raw("k", 7, value)), HasSubstr("boolean of 0 or 1, got 2"));
  EXPECT_THAT(refusal(GgufBuilder().set_raw("k", 9, array_bytes(9, 1) + value)), HasSubstr("arrays of arrays"));
  EXPECT_THAT(refusal(GgufBuilder().set_raw("k", 9, array_bytes(13, 1) + value)), HasSubstr("element type 13"));
  EXPECT_THAT(refusal(GgufBuilder().set_raw("k", 9, array_bytes(7, 1) + value)), HasSubstr("boolean of 0 or 1, got 2"));
}

TEST(GgufHostile, NamesFromTheFileCannotDriveATerminal) {
  const std::string name = "\x1b[2J\n" + std::string(1000, 'x');
  const std::string message = refusal(GgufBuilder().tensor_raw(name, {1}, 42, "1234"));
  EXPECT_THAT(message, AllOf(HasSubstr("\\x1b[2J\\x0a"), HasSubstr("(1005 bytes)"), HasSubstr("42")));
  EXPECT_LT(message.size(), 300u);
}

TEST(GgufHostile, OpenNamesFileForWhatItHoldsAndPathForWhatItLacks) {
  const test::TempDir folder;
  const auto open_refusal = [](const std::string& path) -> std::string {
    try {
      GgufFile::open(path);
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      return error.what();
    }
  };
  EXPECT_THAT(open_refusal(folder.file("cut.gguf", "GGUF\3")), StartsWith("cut.gguf: header: version needs 4 bytes"));
  EXPECT_THAT(open_refusal(folder.path() + "/none.gguf"), StartsWith(folder.path() + "/none.gguf: cannot open"));
  EXPECT_THAT(open_refusal(folder.file("empty.gguf", "")), HasSubstr("0 bytes"));
  EXPECT_EQ(open_refusal(folder.file("good.gguf", tiny().bytes())), "");
}

}  // namespace
}  // namespace tandem
