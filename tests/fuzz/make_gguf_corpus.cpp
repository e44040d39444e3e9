// Writes the GGUF seeds of the fuzzer into a folder: make_gguf_corpus tests/fuzz/corpus/gguf
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/model/gguf_builder.h"

namespace {

using tandem::Format;
using tandem::test::GgufBuilder;

GgufBuilder scalars() {
  GgufBuilder builder;
  builder.set("a", std::uint8_t{1}).set("b", std::int8_t{-1}).set("c", std::uint16_t{2}).set("d", std::int16_t{-2});
  builder.set("e", std::uint32_t{3}).set("f", std::int32_t{-3}).set("g", std::uint64_t{4}).set("h", std::int64_t{-4});
  return builder.set("i", 0.5f).set("j", 0.25).set("k", true).set("l", "text");
}

GgufBuilder arrays() {
  GgufBuilder builder;
  builder.set("a", std::vector<std::uint8_t>{1, 2})
      .set("b", std::vector<std::int16_t>{-1})
      .set("c", std::vector<float>{0.5f});
  return builder.set("d", std::vector<bool>{true, false}).set("e", std::vector<std::string>{"x", "", "yz"});
}

GgufBuilder tensors() {
  GgufBuilder builder(2);
  builder.align(8).tensor_f32("a", {2, 1, 1, 1}, std::vector<float>(2, 1.0f));
  builder.tensor("b", {32, 2}, Format::q4_0, std::string(36, '\x31'))
      .tensor("c", {32}, Format::q5_1, std::string(24, '\x31'));
  return builder.tensor("d", {256}, Format::q6_k, std::string(210, '\x31'));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: make_gguf_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = arguments[1];
  scalars().write(folder + "/scalars.gguf");
  arrays().write(folder + "/arrays.gguf");
  tensors().write(folder + "/tensors.gguf");
  return 0;
}
