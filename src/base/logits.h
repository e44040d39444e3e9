// Logits of the rows asked for, in host memory.
#pragma once
#include <cstddef>
#include <span>

namespace tandem {

struct Logits {
  std::span<const float> data;  // [rows, vocab]; valid until the next forward of the same model
  int vocab = 0;
  std::span<const float> row(int i) const { return data.subspan(static_cast<std::size_t>(i) * vocab, vocab); }
};

}  // namespace tandem
