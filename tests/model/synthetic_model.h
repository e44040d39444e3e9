// Model files of any size with seeded weights, written as a stream: for measurements where no real model can be had.
//
// What such a model says is set beforehand: the residual stream keeps a row's own token, and the output head answers it
// with that token's successor. The blocks add noise, so that two models of one vocabulary agree often but not always,
// as a draft and its target do. How often is made, not found: their acceptance says nothing about real models.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/quant/format.h"
#include "src/base/types.h"

namespace tandem::test {

// A qwen2 model whose matrices are q4_k, q5_0, q6_k or q8_0. As llama.cpp's mixes do, every other layer keeps its
// values and its down projection in a finer format.
struct SyntheticShape {
  std::string_view name;
  int layers, width, heads, kv_heads, head_dim, ffn, vocabulary;
  Format matrix, down, fine_value, fine_down, embedding, head;
  double share;  // of the last hidden row's length that is the row's own token
};

// "tiny", and "0.5b" and "1.5b" with the shapes and formats of Qwen2.5-Coder Q4_K_M.
std::span<const SyntheticShape> synthetic_shapes();
// Throws Error(usage) for a name that is none of theirs.
const SyntheticShape& synthetic_shape(std::string_view name);

// The likeliest token after `token`, which is below the control tokens.
TokenId synthetic_successor(const SyntheticShape& shape, TokenId token);

// Writes the GGUF file: byte for byte the same for a shape and seed. Throws Error(file) when it cannot be written.
void write_synthetic_model(const SyntheticShape& shape, std::uint64_t seed, const std::string& path);

}  // namespace tandem::test
