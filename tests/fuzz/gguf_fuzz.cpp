// Any bytes at all as a GGUF file: refused with Error(file), or a directory whose every tensor can be decoded.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/quant/format.h"
#include "src/base/error.h"
#include "src/model/gguf_reader.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto directory = tandem::read_gguf_directory(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    for (const tandem::GgufTensor& tensor : directory.tensors) {
      const tandem::FormatInfo& info = tandem::format_info(tensor.format);
      std::vector<float> values(tensor.data.size() / static_cast<std::size_t>(info.block_bytes) *
                                static_cast<std::size_t>(info.block_values));
      tandem::decode_blocks(tensor.format, tensor.data, values);
    }
  } catch (const tandem::Error& error) {
    if (error.kind() != tandem::ErrorKind::file) __builtin_trap();
  }
  return 0;
}
